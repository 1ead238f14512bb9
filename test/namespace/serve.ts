/** A tree on a real server, on a unix socket of its own. */
import { expect } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { ToolListeners } from "../../src/namespace/tool-listeners.ts";
import { Tree } from "../../src/namespace/tree.ts";
import type { Client, Fid } from "../../src/ninep/client.ts";
import { dial } from "../../src/ninep/dial.ts";
import { listenUnix } from "../../src/ninep/listen.ts";
import { Server } from "../../src/ninep/server.ts";
import { type FakeAgent, FakeRuntime, type FakeSession } from "./fake.ts";

export interface Served extends AsyncDisposable {
  runtime: FakeRuntime;
  /** A session `a` with the agent `default`. */
  session: FakeSession;
  agent: FakeAgent;
  client: Client;
  connect(msize?: number): Promise<Client>;
  /** A connection of a tool of that agent. */
  tool(agent: FakeAgent): Promise<Client>;
  tools: ToolListeners;
  /** Its `close` settles when every file that was open is closed. */
  server: Server;
  dir: string;
}

export async function serve(): Promise<Served> {
  const dir = mkdtempSync(join(tmpdir(), "ollie-tree-"));
  const runtime = new FakeRuntime();
  const tree = new Tree(runtime, { spoolDir: join(dir, "spool") });
  const server = new Server(tree.attach, { onRefused: tree.onRefused });
  const listener = await listenUnix(join(dir, "run", "9p"), server);
  const tools = new ToolListeners(listener.path, () => server);
  const connect = (msize = 65536) => dial(`unix!${listener.path}`, { msize, uname: "tester" });
  const session = await runtime.createSession(new Map([["name", "a"]]));
  const clients: Client[] = [];
  const opened = async (msize?: number) => {
    const client = await connect(msize);
    clients.push(client);
    return client;
  };
  return {
    runtime,
    session,
    agent: session.agents()[0]!,
    client: await opened(),
    connect: opened,
    tools,
    async tool(agent) {
      const client = await dial(tools.unix(agent), { uname: "tester" });
      clients.push(client);
      return client;
    },
    server,
    dir,
    async [Symbol.asyncDispose]() {
      for (const client of clients) client.close();
      listener.stop();
      tools.close();
      await server.close();
      rmSync(dir, { recursive: true, force: true });
    },
  };
}

export const agentPath = "session/a/agent/default";

/** One Twrite. */
export function send(fid: Fid, text: string, offset = 0): Promise<number> {
  return fid.write(offset, Buffer.from(text));
}

/** One Tread as text. */
export async function take(fid: Fid, offset = 0, count?: number): Promise<string> {
  return (await fid.read(offset, count)).toString();
}

/** What a promise was rejected with, as the client is told it. */
export async function refusal(work: Promise<unknown>): Promise<string> {
  try {
    await work;
  } catch (error) {
    return (error as Error).message;
  }
  throw new Error("it was not refused");
}

/** What is refused as a matter of permission, in as many bytes as an error may have. */
export async function denied(work: Promise<unknown>, words: string | RegExp = ""): Promise<void> {
  const told = await refusal(work);
  expect(told).toStartWith("permission denied");
  expect(told).toMatch(words);
  expect(Buffer.byteLength(told)).toBeLessThanOrEqual(128);
}

export async function missing(work: Promise<unknown>): Promise<void> {
  expect(await refusal(work)).toStartWith("file does not exist");
}
