/**
 * The one inspect tap of a session: every transition of its agents and their calls goes into the agent's trace, and of its way to another host
 * into the trace of each agent.
 */
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
    const isCall = ref.id.startsWith("call:");
    if (from === undefined && inspected.event.type === "xstate.init" && !isCall) return;
    if (ref.id === "remote") {
      const transition = { actor: "remote", event: inspected.event.type, from: from ?? "", to };
      for (const agent of session.agents()) agent.trace.add(transition);
      return;
    }
    const owner = session.agentByActor(isCall ? ref._parent!.id : ref.id);
    owner?.trace.add({ actor: isCall ? ref.id : "agent", event: inspected.event.type, from: from ?? "", to });
  };
}
