/** The one inspect tap of a session: every transition of its agents and their calls goes into the agent's trace. */
import type { AnyActorRef, InspectionEvent } from "xstate";
import { dotted } from "../../actors/view.ts";
import type { Session } from "./session.ts";

const lastValues = new WeakMap<AnyActorRef, string>();

export function tap(session: Session): (event: InspectionEvent) => void {
  return (inspected) => {
    if (inspected.type !== "@xstate.snapshot" || !("value" in inspected.snapshot)) return;
    const ref = inspected.actorRef as AnyActorRef & { _parent?: AnyActorRef };
    const to = dotted(inspected.snapshot.value);
    const from = lastValues.get(ref);
    if (from === to) return;
    lastValues.set(ref, to);
    if (from === undefined && inspected.event.type === "xstate.init" && ref.id.startsWith("agent:")) return;
    const isCall = ref.id.startsWith("call:");
    const owner = session.agentByActor(isCall ? ref._parent!.id : ref.id);
    owner?.trace.add({ actor: isCall ? ref.id : "agent", event: inspected.event.type, from: from ?? "", to });
  };
}
