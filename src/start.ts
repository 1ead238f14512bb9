/**
 * `npm start`: from a checkout to an agent in one step. Starts the server if none runs and opens the session `main`: in tmux, else line by
 * line; without a terminal it shows one turn and says how to go on.
 */
import { join } from "node:path";
import { type Block, BlockReader, plain } from "./cli/client/blocks.ts";
import { converse } from "./cli/client/converse.ts";
import { forOutput } from "./cli/client/visible.ts";
import { BrokenPipe, writeError, writeOut } from "./cli/stdio.ts";
import { toFault } from "./fault.ts";
import type { Client, Fid } from "./ninep/client.ts";
import { dial } from "./ninep/dial.ts";

const session = "main";
const dist = join(import.meta.dir, "../dist");
/** Where npm was called, not where package.json lies: that is the folder the agent is to work in. */
const cwd = process.env.INIT_CWD ?? process.cwd();
const env = { ...process.env, PATH: `${dist}:${process.env.PATH}` };

interface Status {
  running: boolean;
  addresses: string[];
  version?: string;
}

try {
  await start();
  process.exit(0);
} catch (error) {
  if (error instanceof BrokenPipe) process.exit(141);
  await writeError(`ollie: ${toFault(error).message}\n`);
  process.exit(1);
}

async function start(): Promise<void> {
  const before = await serverStatus();
  if (!before.running) await run([join(dist, "olliesrv"), "start"]);
  const { addresses, version } = before.running ? before : await serverStatus();
  const built = (await output([join(dist, "olliesrv"), "--version"])).replace(/^olliesrv /, "").trim();
  if (version !== built) {
    const runs = version ?? "unknown";
    await writeOut(
      `A server of version ${runs} runs, this is ${built}: dist/olliesrv restart exchanges it.\n`,
    );
  }
  const client = await dial(addresses[0]!);
  const agent = await ensureAgent(client);
  if (process.stdin.isTTY && process.stdout.isTTY) {
    if (Bun.which("tmux")) return await run([join(dist, "o"), "tui", session]);
    await converse(await client.walk(`session/${session}/agent/${agent}`), session);
  } else await showOneTurn(client, agent);
  client.close();
  await howToGoOn(agent);
}

/** Status 1 only says that none runs; one that cannot be asked about has been explained on stderr. */
async function serverStatus(): Promise<Status> {
  const report = await output([join(dist, "olliesrv"), "status", "--json"]);
  if (report === "") process.exit(1);
  return JSON.parse(report);
}

async function output(argv: string[]): Promise<string> {
  return new Response(Bun.spawn(argv, { env, cwd, stderr: "inherit" }).stdout).text();
}

/** A program that has the terminal to itself; its failure, which it has explained, is ours. */
async function run(argv: string[]): Promise<void> {
  const status = await Bun.spawn(argv, { env, cwd, stdio: ["inherit", "inherit", "inherit"] }).exited;
  if (status !== 0) process.exit(status);
}

async function showOneTurn(client: Client, agent: string): Promise<void> {
  const place = `session/${session}/agent/${agent}`;
  const index = (await client.readText("session/idx")).split("\n").map((line) => line.split("\t"));
  const backend = index.find((line) => line[0] === session && line[1] === agent)?.[3];
  const turn = new ShownTurn(await client.openFile(`${place}/chat`));
  await turn.skip();
  const statewait = await client.openFile(`${place}/statewait`);
  // The rehearsal runs commands; a model understands a question.
  const prompt = backend === "script" ? "$ ls\n" : "What is in this folder? Two sentences will do.\n";
  await client.writeFile(`${place}/prompt`, prompt);
  let next = statewait.read(0);
  for (let state = ""; state !== "idle"; ) {
    state = (await next).toString().trim();
    // Asked before anything else is done: of changes that come while nobody asks only the last is told.
    if (state !== "idle") next = statewait.read(0);
    await turn.show(state);
  }
}

/** Prints the blocks of a turn and the states between them. */
class ShownTurn {
  readonly #blocks = new BlockReader();
  #pending: Block[] = [];
  #offset = 0;

  constructor(private readonly chat: Fid) {}

  async skip(): Promise<void> {
    this.#offset = Number((await this.chat.stat()).length);
  }

  /** Prints a state behind the blocks that came before it, though the chat may be further by now: what it leads to comes later. */
  async show(state: string): Promise<void> {
    for (let piece = await this.#read(); piece.length > 0; piece = await this.#read())
      this.#pending.push(...this.#blocks.push(piece));
    const before =
      state === "idle" ? undefined : state.startsWith("calling") ? ["call"] : ["user", "tool", "retry"];
    const count = before
      ? this.#pending.findLastIndex(({ type }) => before.includes(type)) + 1
      : this.#pending.length;
    const texts = this.#pending.splice(0, count).map(({ text }) => plain(text));
    await writeOut(forOutput(`${texts.join("")}[${state}]\n`));
  }

  async #read(): Promise<Uint8Array> {
    const piece = await this.chat.read(this.#offset);
    this.#offset += piece.length;
    return piece;
  }
}

/** Sees to it that there is the session, and an agent in it. Returns the name of the agent, the first where there are several. */
async function ensureAgent(client: Client): Promise<string> {
  const names = (await client.readDir("session")).map(({ name }) => name);
  if (!names.includes(session))
    await client.writeFile("session/new", `name=${session} cwd="${cwd.replace(/[\\"]/g, "\\$&")}"\n`);
  const first = await firstAgent(client);
  if (first !== undefined) return first;
  await client.writeFile(`session/${session}/agent/new`, "agent=default\n");
  return (await firstAgent(client)) ?? "default";
}

async function firstAgent(client: Client): Promise<string | undefined> {
  const index = (await client.readText("session/idx")).split("\n").map((line) => line.split("\t"));
  return index.find(([name]) => name === session)?.[1];
}

async function howToGoOn(agent: string): Promise<void> {
  await writeOut(`
The server goes on in the background, and the session ${session} with it. From a shell:

  export PATH="${dist}:$PATH"
  eval "$(o env ${session})"
  o prompt 'What else is there?'; o wait; o read reply
  o tui                   # chat and prompt side by side, in tmux
  ollie-9p ls -l session/${session}/agent/${agent}
  olliesrv stop
`);
}
