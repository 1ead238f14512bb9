/** What the tests of the tree share: a compiled server with a scripted model, a 9P client, and sessions to try things on. */
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Client, ClientOptions, Fid } from "../../src/ninep/client.ts";
import { dial } from "../../src/ninep/dial.ts";
import {
  dist,
  type Home,
  type Outcome,
  type RunOptions,
  startServer,
  type TestServer,
  until,
} from "./harness.ts";

/** What the scripted model answers where a test has no rules of its own. */
const rules = [
  // Streams, and then says nothing more until it is stopped.
  { match: { user: "/^forever/" }, do: [{ text: "On it.\n", chunk: 2 }, { delay: 3_600_000 }] },
  { match: { user: "/^slowly (.*)/s" }, do: [{ text: "Slow: $1", chunk: 1, delay: 5 }] },
  {
    match: { user: "/^run (.*)/s" },
    do: [{ text: "Running.\n" }, { calls: [{ name: "shell", args: { command: "$1" } }] }],
  },
  {
    match: { user: "/^detach (.*)/s" },
    do: [{ calls: [{ name: "shell", args: { command: "$1", detach: true } }] }],
  },
  {
    match: { user: "side by side" },
    do: [{ calls: ["pause_two", "pause_one", "pause_two"].map((name) => ({ name })) }],
  },
  { match: { tool: "/^pause_/" }, do: [{ text: "Paused." }] },
  { match: { tool: "shell", result: "/(.*)/s" }, do: [{ text: "It printed: $1" }] },
  { match: { user: "/(.*)/s" }, do: [{ text: "You said: $1" }] },
];

export interface Session {
  name: string;
  /** Path of its folder. */
  path: string;
  /** Path of its first agent's folder. */
  agent: string;
}

export class World {
  readonly #clients: Client[] = [];
  #count = 0;

  private constructor(
    readonly server: TestServer,
    /** A connection for all that needs none of its own. */
    readonly client: Client,
  ) {
    this.#clients.push(client);
  }

  /** Runs until `stop`. */
  static async start(
    options: { rules?: object[]; rehearsal?: boolean; env?: Record<string, string> } = {},
  ): Promise<World> {
    const scenario = options.rehearsal ? undefined : { rules: options.rules ?? rules };
    const server = await startServer({ scenario, env: options.env });
    return new World(server, await dial(server.address));
  }

  async stop(): Promise<void> {
    for (const client of this.#clients) client.close();
    await this.server.stop();
  }

  get home(): Home {
    return this.server.home;
  }

  /** A connection of its own. */
  async connect(options?: ClientOptions): Promise<Client> {
    const client = await dial(this.server.address, options);
    this.#clients.push(client);
    return client;
  }

  /** Installs a tool: a shell script that takes no arguments and runs beside others. */
  async tool(name: string, script: string): Promise<void> {
    const file = join(this.home.config, "tools", name);
    writeFileSync(file, `#!/bin/sh\n${script}\n`, { mode: 0o755 });
    writeFileSync(`${file}.meta`, JSON.stringify({ description: "For a test.", concurrency: "read" }));
    await until(`tool ${name}`, async () => (await this.read("tools")).includes(`${name}\t`));
  }

  /** Ends a connection as a crash would, and waits until the server knows. */
  async drop(client: Client): Promise<void> {
    const open = async () => Number(/^ollie_9p_connections (\d+)$/m.exec(await this.read("metrics"))![1]);
    const before = await open();
    client.close();
    await until("the end of the connection", async () => (await open()) < before);
  }

  /** A session of its own that works in the home's work folder, with further keys. */
  async session(keys = ""): Promise<Session> {
    const name = `s${++this.#count}`;
    await this.client.writeFile("session/new", `name=${name} cwd="${this.home.work}" ${keys}\n`);
    const path = `session/${name}`;
    const agents = (await this.client.readDir(`${path}/agent`)).map((entry) => entry.name);
    return { name, path, agent: `${path}/agent/${agents.find((agent) => agent !== "new")}` };
  }

  /** `ollie-9p` with its arguments. */
  p9(args: string[], options?: RunOptions): Promise<Outcome> {
    return this.home.run([join(dist, "ollie-9p"), ...args], options);
  }

  read(path: string): Promise<string> {
    return this.client.readText(path);
  }

  write(path: string, text: string): Promise<void> {
    return this.client.writeFile(path, text);
  }

  /** Waits until the agent is idle. */
  async idle(agent: string): Promise<void> {
    await this.client.readText(`${agent}/idlewait`);
  }

  /** Submits a prompt and waits until its turn, and what waited with it, is over. */
  async turn(agent: string, prompt: string): Promise<void> {
    await this.write(`${agent}/prompt`, prompt);
    await this.idle(agent);
  }

  /** Carries out verbs of an agent. */
  ctl(agent: string, lines: string): Promise<void> {
    return this.write(`${agent}/ctl`, `${lines}\n`);
  }

  /** A file of JSON lines. */
  async json(path: string) {
    const lines = (await this.read(path)).split("\n").filter(Boolean);
    return lines.map((line) => JSON.parse(line));
  }

  /** What a model would get: role and text of each message. */
  async context(agent: string): Promise<string[]> {
    const messages = await this.json(`${agent}/context`);
    return messages.map(({ role, text }) => `${role}: ${text.trim()}`);
  }

  /** Waits until the agent is in that state. */
  async becomes(agent: string, state: string): Promise<void> {
    await until(state, async () => (await this.read(`${agent}/state`)) === `${state}\n`);
  }

  /** A turn that waits in a tool call until the barrier is lifted, and then runs `then`. */
  async calling(agent: string, then?: string): Promise<Barrier> {
    const barrier = new Barrier(this.home);
    await this.write(`${agent}/prompt`, `run ${barrier.command(then)}`);
    await this.becomes(agent, "calling: shell");
    return barrier;
  }
}

/** What a tool can be made to wait for: a file in the work folder, which `go` makes. */
export class Barrier {
  static #count = 0;
  readonly #name = `go-${++Barrier.#count}`;

  constructor(private readonly home: Home) {}

  /** A shell command that waits, and then runs `then`. */
  command(then = "echo done"): string {
    return `while [ ! -e ${this.#name} ]; do sleep 0.01; done; ${then}`;
  }

  go(): void {
    writeFileSync(join(this.home.work, this.#name), "");
  }
}

/** One Twrite. */
export function send(fid: Fid, text: string | Uint8Array, offset = 0): Promise<number> {
  return fid.write(offset, Buffer.from(text as string));
}

/** One Tread as text. */
export async function take(fid: Fid, offset = 0, count?: number): Promise<string> {
  return (await fid.read(offset, count)).toString();
}

/** What a promise was rejected with. */
export async function refusal(work: Promise<unknown>): Promise<string> {
  try {
    await work;
  } catch (error) {
    return (error as Error).message;
  }
  throw new Error("it was not refused");
}

/** A read at offset 0 that is to be waited for later; a refusal is text as well. */
export function later(fid: Fid, signal?: AbortSignal): Promise<string> {
  return fid.read(0, undefined, signal).then(
    (data) => data.toString(),
    (error: Error) => error.message,
  );
}
