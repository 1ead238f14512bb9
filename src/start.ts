/**
 * `npm start`: from a checkout to an agent in one step. Starts the server if none runs and opens the session `main`: in tmux, else line by
 * line; without a terminal it shows one turn and says how to go on.
 */
import { join } from "node:path";
import { ChatPrinter } from "./cli/client/chat-printer.ts";
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
  await ensureSession(client);
  if (!process.stdin.isTTY || !process.stdout.isTTY) await showOneTurn(client);
  else if (Bun.which("tmux")) await run([join(dist, "o"), "tui", session]);
  else await lineByLine();
  client.close();
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
async function run(argv: string[], more: Record<string, string> = {}): Promise<void> {
  const status = await Bun.spawn(argv, {
    env: { ...env, ...more },
    cwd,
    stdio: ["inherit", "inherit", "inherit"],
  }).exited;
  if (status !== 0) process.exit(status);
}

async function lineByLine(): Promise<void> {
  const tail = Bun.spawn([join(dist, "o"), "tail"], {
    env: { ...env, session },
    stdio: ["ignore", "inherit", "inherit"],
  });
  await run([join(dist, "o"), "prompt"], { session });
  tail.kill();
  await howToGoOn();
}

async function showOneTurn(client: Client): Promise<void> {
  const index = (await client.readText("session/idx")).split("\n").map((line) => line.split("\t"));
  const [, agent, , backend] = index.find(([name]) => name === session)!;
  const place = `session/${session}/agent/${agent}`;
  const chat = new ChatPrinter(await client.openFile(`${place}/chat`));
  await chat.skip();
  const states = showStates(await client.openFile(`${place}/statewait`), chat);
  // The rehearsal runs commands; a model understands a question.
  const prompt = backend === "script" ? "$ ls\n" : "What is in this folder? Two sentences will do.\n";
  await client.writeFile(`${place}/prompt`, prompt);
  // Its failure is the failure of what is printed after it.
  const timer = setInterval(() => chat.print().catch(() => {}), 50);
  await states;
  clearInterval(timer);
  await howToGoOn();
}

/** Shows every change of the state behind the part of the chat that came before it, up to the end of the turn. */
async function showStates(statewait: Fid, chat: ChatPrinter): Promise<void> {
  let next = statewait.read(0);
  for (let state = ""; state !== "idle"; ) {
    state = (await next).toString().trim();
    // Asked before anything else is done: of changes that come while nobody asks only the last is told.
    if (state !== "idle") next = statewait.read(0);
    await chat.print();
    await chat.note(`[${state}]`);
  }
}

async function ensureSession(client: Client): Promise<void> {
  const names = (await client.readDir("session")).map(({ name }) => name);
  if (!names.includes(session))
    await client.writeFile("session/new", `name=${session} cwd="${cwd.replace(/[\\"]/g, "\\$&")}"\n`);
}

async function howToGoOn(): Promise<void> {
  await writeOut(`
The server goes on in the background, and the session ${session} with it. From a shell:

  export PATH="${dist}:$PATH"
  eval "$(o env ${session})"
  o prompt 'What else is there?'; o wait; o read reply
  o tui                   # chat and prompt side by side, in tmux
  ollie-9p ls -l session/${session}/agent/default
  olliesrv stop
`);
}
