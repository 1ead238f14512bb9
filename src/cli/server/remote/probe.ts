/** `olliesrv remote probe`: whether a host can be worked on, tried step by step with a session of its own. */
import { randomBytes } from "node:crypto";
import { Fault } from "../../../fault.ts";
import type { Locator } from "../../../remote/client/locator.ts";
import { fileEntries, fileText, fileWritten } from "../../../remote/protocol/files.ts";
import { opHash } from "../../../remote/protocol/hash.ts";
import { type OpStart, opReport } from "../../../remote/protocol/operation.ts";
import type { Peer } from "../../../remote/protocol/peer.ts";
import { type Attached, attached } from "../../../remote/protocol/session.ts";
import { keepProbe, knownSessions } from "./known.ts";
import type { Reached } from "./reach.ts";

export interface Step {
  step: string;
  /** What was found. */
  text: string;
}

const settings = { env: {}, sandboxes: {}, approved: [], toolsHash: "" };
const fileName = "ollie-probe.txt";

/**
 * @param sessionId of an earlier probe, to go on with
 * @throws CodedFault where a step does not go as it should
 */
export async function* probe(
  host: Reached,
  { state, target, sessionId }: { state: string; target: string; sessionId?: string },
): AsyncGenerator<Step, Locator> {
  const { lease, booted, hello } = host;
  yield {
    step: "connect",
    text: `${lease.connection.via}${lease.connection.hostKey ? `, key ${lease.connection.hostKey}` : ""}`,
  };
  yield {
    step: "bootstrap",
    text: `${booted.digest.slice(0, 12)} ${booted.hit ? "was there" : `installed, ${booted.uploaded} bytes sent`}`,
  };
  for (const text of booted.notes) yield { step: "note", text };
  yield {
    step: "hello",
    text: `ollie-remote ${hello.version}, ${hello.os} ${hello.arch} ${hello.libc}, kernel ${hello.kernel}`,
  };
  yield { step: "can", text: hello.caps.join(" ") };

  let kept = sessionId === undefined ? undefined : earlier(state, target, sessionId);
  const first = kept ? await attach(host.peer, kept) : undefined;
  if (first) kept = follow(kept!, first);
  else kept = await create(host, target);
  keepProbe(state, kept);
  yield { step: first ? "attach" : "create", text: kept.sessionId };

  yield* files(host.peer, randomBytes(8).toString("hex"));
  const request = { steps: [{ program: "echo", args: ["ollie"], env: {} }], sandbox: "", detach: false };
  const start: OpStart = { opId: Bun.randomUUIDv7(), hash: opHash(request), ...request };
  const began = await run(host.peer, start);
  yield { step: "run", text: `echo: ${began.status} ${began.code ?? began.signal ?? ""}`.trim() };
  const replayed = await run(host.peer, start);
  if (replayed.started !== began.started)
    throw new Fault("io", "an operation that was asked for twice ran twice");
  yield { step: "replay", text: "asked for again, it was not run again" };

  await host.peer.request("session.detach", {});
  yield { step: "detach", text: "left" };
  const again = await host.again();
  try {
    const back = await attach(again.peer, kept);
    if (!back.ops.some(({ opId }) => opId === start.opId))
      throw new Fault("io", "the session does not know its operation any more");
    kept = follow(kept, back);
    keepProbe(state, kept);
    yield { step: "reattach", text: `epoch ${kept.epoch}, the operation is known` };
  } finally {
    again.close();
  }
  return kept;
}

async function create(host: Reached, target: string): Promise<Locator> {
  const sessionId = Bun.randomUUIDv7();
  const key = randomBytes(32).toString("base64");
  const { policy, envRefs } = host.profile;
  const workspace = { kind: "managed", seed: "empty" };
  const params = { sessionId, workspace, settings, policy, envRefs, key };
  const answer = await host.peer.request("session.create", params, { schema: attached });
  return follow({ target, hostKey: host.lease.connection.hostKey, sessionId, key } as Locator, answer);
}

function attach(peer: Peer, { sessionId, policyHash, envRefHash, epoch }: Locator): Promise<Attached> {
  const params = { sessionId, policyHash, envRefHash, epoch, settings };
  return peer.request("session.attach", params, { schema: attached });
}

function follow(kept: Locator, { digest, policyHash, envRefHash, epoch, cwd }: Attached): Locator {
  return { ...kept, digest, policyHash, envRefHash, epoch, cwd };
}

function earlier(state: string, target: string, sessionId: string): Locator {
  const found = knownSessions(state).find((known) => known.locator.sessionId === sessionId);
  if (found?.session !== undefined)
    throw new Fault(
      "denied",
      `${sessionId} belongs to the session ${found.session}: a probe would write into its folder`,
    );
  if (found?.locator.target !== target)
    throw new Fault("missing", `no probe has made a session ${sessionId} on ${target}`);
  return found.locator;
}

async function* files(peer: Peer, text: string): AsyncGenerator<Step> {
  const wrote = await peer.request("file.write", { path: fileName, text }, { schema: fileWritten });
  yield { step: "write", text: `${fileName}, ${wrote.size} bytes` };
  const read = await peer.request("file.read", { path: fileName }, { schema: fileText });
  if (read.text !== text) throw new Fault("io", "what was read is not what was written");
  yield { step: "read", text: "the same" };
  const { entries } = await peer.request("file.list", { path: "." }, { schema: fileEntries });
  if (!entries.some(({ path }) => path === fileName)) throw new Fault("io", `${fileName} is not in the list`);
  yield { step: "list", text: `${entries.length} ${entries.length === 1 ? "entry" : "entries"}` };
}

async function run(peer: Peer, start: OpStart) {
  await peer.request("op.start", start, { schema: opReport });
  const report = await peer.request("op.wait", { opId: start.opId, limit: 25 }, { schema: opReport });
  if (report.status === "exited" && report.code === 0) return report;
  throw new Fault("io", `echo could not be run there: ${report.status} ${report.output ?? ""}`.trim());
}
