/** What must hold before an operation is accepted. */
import { statfsSync } from "node:fs";
import type { Tool } from "../../../tools/tool.ts";
import { type Wishes, wishesOf } from "../../../tools/wishes.ts";
import { coded } from "../../protocol/errors.ts";
import { holdsGrant, opHash } from "../../protocol/hash.ts";
import type { OpStart } from "../../protocol/operation.ts";
import type { OperationsGround } from "./engine.ts";
import { checkRaw } from "./steps.ts";
import type { Toolset } from "./toolset.ts";

/** Bytes that must be free for the journal and some output. */
const leastFree = 8 * 1024 * 1024;

/** @returns for a tool call its tool, as it is now. @throws CodedFault that says what is wrong with the request */
export function admit(request: OpStart, ground: OperationsGround, tools: Toolset): Tool | undefined {
  const { steps, detach, grant, hash } = request;
  if (hash !== opHash(request))
    throw coded("op.hash", "the hash of the request is not that of what it holds");
  const calls = steps.filter((step) => "tool" in step);
  if ((calls.length > 0 || detach) && steps.length > 1)
    throw coded("op.invalid", "a tool call, and what is detached, is an operation of one step");
  if (grant) checkGrant(request, ground);
  for (const step of steps) if (!("tool" in step)) checkRaw(step, ground);
  const [call] = calls;
  if (!call) {
    if (grant?.root) throw coded("op.invalid", "only tool calls run as root");
  } else ground.policy.checkStep(call);
  const tool = call && tools.get(call.tool);
  const wishes = call && tool && wishesOf(tool, call.args);
  if (wishes && wishes.detach !== detach)
    throw coded("op.invalid", "an operation is detached where its tool call is, and only there");
  if (tool && wishes?.elevated && !grant)
    throw coded("op.grant", `${tool.name} needs the permission of a person, and the request carries none`);
  if (tool && wishes && grant && (!wishes.elevated || wishes.sudo !== grant.root))
    throw coded("op.grant", `the permission is not for what ${tool.name} does: it ${whatItIs(wishes)}`);
  checkDisk(ground.folder);
  return tool;
}

function whatItIs({ elevated, sudo }: Wishes): string {
  if (sudo) return "runs as root";
  return elevated ? "runs outside of the sandbox, but not as root" : "runs in the sandbox";
}

/** The user's answer, for this request and no other: the id is in it, and an id runs once. */
function checkGrant({ opId, hash, grant }: OpStart, { policy, key }: OperationsGround): void {
  policy.checkElevated();
  const { scope, root, expires, mac } = grant!;
  if (!holdsGrant(key, { opId, hash, scope, root, expires }, mac))
    throw coded("op.grant", "the permission is not for this request");
  if (Date.now() > expires)
    throw coded(
      "op.grant",
      "the permission has expired: ask again, or look at the clock of one of the hosts",
    );
}

function checkDisk(folder: string): void {
  const { bavail, bsize } = statfsSync(folder);
  if (bavail * bsize >= leastFree) return;
  const free = (bavail * bsize) >> 20;
  throw coded("op.no_space", `nothing is run: only ${free} MiB are free where ${folder} lies`);
}
