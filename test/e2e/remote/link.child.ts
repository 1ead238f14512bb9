/**
 * The client's end of one session on another host, in the network of the rig: operations are asked for on stdin, one command a line, and
 * their ends are told on stdout. What has to outlast it is in the file that it is given.
 *
 * Usage: link.child.ts TARGET CWD FILE PROGRAMS
 */
import { existsSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { createActor, fromPromise } from "xstate";
import { type RemoteWork, remoteLine, remoteMachine } from "../../../actors/remote.ts";
import { CodedFault } from "../../../src/fault.ts";
import { Connections } from "../../../src/remote/client/connections.ts";
import { RemoteLink } from "../../../src/remote/client/link.ts";
import { locator } from "../../../src/remote/client/locator.ts";
import type { Request } from "../../../src/remote/client/operation.ts";
import { LocalTools } from "../../../src/remote/client/tools/local.ts";
import { loadRemotes } from "../../../src/remote/policy/remotes.ts";

/** An operation; without a request it is only looked for. */
export interface Asked {
  opId: string;
  request?: Request;
}

const [target, cwd, file, programs] = process.argv.slice(2) as [string, string, string, string];
const profile = loadRemotes("/nonexistent/remotes.yaml").profileFor(target);
profile.ssh.batch = true;

function tell(message: object): void {
  process.stdout.write(`${JSON.stringify(message)}\n`);
}

const link: RemoteLink = new RemoteLink(
  {
    target,
    profile,
    client: "test",
    connections: new Connections(),
    ...(existsSync(file) && { locator: locator.parse(JSON.parse(readFileSync(file, "utf8"))) }),
    workspace: { kind: "inplace", path: cwd },
    settings: () => ({ env: {}, sandboxes: {}, approved: [] }),
    tools: new LocalTools([]),
    programs,
  },
  {
    progress: (progress) => actor.send({ type: "PROGRESS", progress }),
    lost: (fault) => actor.send({ type: "LOST", fault }),
    keep: (kept) => {
      writeFileSync(`${file}.new`, JSON.stringify(kept));
      renameSync(`${file}.new`, file);
    },
    note: (text) => console.error(text),
    toolsChanged() {},
    toolsOutdated() {},
    asks() {},
  },
);
const work: RemoteWork = {
  target,
  now: Date.now,
  random: () => 0.5,
  stands: (how, fault) => link.stands(how, fault),
};
const actor = createActor(
  remoteMachine.provide({
    actors: {
      connect: fromPromise(({ signal }) => link.connect(signal)),
      bootstrap: fromPromise(({ signal }) => link.bootstrap(signal)),
      attach: fromPromise(({ signal }) => link.attach(signal)),
      sync: fromPromise(({ signal }) => link.sync(signal)),
    },
  }),
  { input: { work } },
);
actor.subscribe((snapshot) => {
  console.error(remoteLine(snapshot));
  // Hosts are here at once, or never.
  if (snapshot.matches("reconnecting")) setTimeout(() => actor.send({ type: "RECONNECT" }), 50);
});
actor.start();
actor.send({ type: "CONNECT" });

async function follow({ opId, request }: Asked): Promise<void> {
  let output = "";
  const operation = link.operations.run(opId, request, {
    output: (stream, data) => {
      if (stream === "out") output += data.toString();
    },
  });
  operation.accepted.then(
    () => tell({ opId, accepted: true }),
    () => {},
  );
  try {
    const { status, code, signal } = await operation.ended;
    tell({ opId, end: { status, code, signal, output } });
  } catch (error) {
    const code = error instanceof CodedFault ? error.code : String((error as Error).stack);
    tell({ opId, end: { status: code, output } });
  }
}

for await (const line of console) void follow(JSON.parse(line) as Asked);
