/** What the model is told of a call on another host. */
import { CodedFault, Fault } from "../../fault.ts";
import type { CallOutcome } from "../../tools/tool.ts";
import { isInfrastructure } from "../protocol/errors.ts";
import type { OpReport } from "../protocol/operation.ts";

/** The outcome of the host, with the host's name in its last line: paths in it are that host's. */
export function outcomeOn(host: string, outcome: CallOutcome, mask: (text: string) => string): CallOutcome {
  const { closing } = outcome;
  // Without one the tool itself has printed all of it.
  const body = closing ? outcome.text.slice(0, -closing.length).replace(/\n$/, "") : outcome.text;
  const told = closing?.endsWith("]") ? `${closing.slice(0, -1)}, on ${host}]` : `[on ${host}]`;
  return { ...outcome, text: mask(body === "" ? told : `${body}\n${told}`), closing: mask(told) };
}

/** A call whose end nobody has seen: the daemon or the host has ended first. That is a fact about the call. */
export function interrupted(host: string, { streams }: OpReport, output: string): CallOutcome {
  const bytes = Object.values(streams).reduce((sum, size) => sum + size, 0);
  const seen = bytes === 0 ? "It had printed nothing until then" : `What it had printed until then is above`;
  const closing = `[interrupted: ${host} was restarted, or ollie-remote was ended there, while this ran. ${seen}; how far it came beyond that is not known, so look before you run it again]`;
  return { ok: false, how: "failed", text: output === "" ? closing : `${output}\n${closing}`, closing };
}

/** Ended by the user while the host cannot be told. */
export function cancelledAway(host: string, reason: unknown, output: string): CallOutcome {
  const who = reason instanceof Fault ? reason.message : "cancelled by the user";
  const closing = `[${who} while ${host} is out of reach: it is ended there as soon as the host can be told]`;
  return { ok: false, how: "cancelled", text: output === "" ? closing : `${output}\n${closing}`, closing };
}

/** Told to the model where its user has wanted that (`on_loss: report`). */
export function outOfReach(host: string, seconds: number, output: string): CallOutcome {
  const closing = `[${host} has been out of reach for ${seconds} s. The call goes on there; how it ends is not known here]`;
  return { ok: false, how: "failed", text: output === "" ? closing : `${output}\n${closing}`, closing };
}

/** What the host has refused before anything ran. @throws the fault where it says nothing that a model could act on */
export function refusal(name: string, error: unknown): CallOutcome {
  const lostTrack = error instanceof CodedFault && /^op\.(?:unknown|mismatch)$/.test(error.code);
  if (!(error instanceof Fault) || isInfrastructure(error) || lostTrack) throw error;
  return { ok: false, how: "refused", text: `${name} could not be started: ${error.message}` };
}
