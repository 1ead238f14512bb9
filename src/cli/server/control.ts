/** start, stop, restart, reload, status. */
import { visible } from "../../elevate/visible.ts";
import { Fault } from "../../fault.ts";
import { dial } from "../../ninep/dial.ts";
import { runningJobs } from "../../store/job-store.ts";
import { command } from "../program.ts";
import { writeError, writeOut } from "../stdio.ts";
import { startServer, stopServer } from "./background.ts";
import { findInstance, type Instance } from "./instance.ts";
import {
  asArguments,
  configFor,
  listenAddresses,
  logFile,
  startOptions,
  whereabouts,
  whichOptions,
} from "./options.ts";

/** Milliseconds that a server gets to answer `status`. */
const answerLimit = 5000;

export const start = command({
  usage: "[OPTIONS]",
  about:
    "Starts the server in the background and waits until it answers. Its log is olliesrv.log in the state folder.",
  options: startOptions,
  words: [0, 0],
  async run({ values }) {
    const config = configFor(values);
    const running = findInstance(config.paths.state);
    if (running)
      throw new Fault("busy", `it runs already, as process ${running.pid}; olliesrv restart starts it anew`);
    await sayStarted(await startServer(config, asArguments(values)));
    return 0;
  },
});

export const restart = command({
  usage: "[OPTIONS]",
  about:
    "Ends the server and starts it again: with OPTIONS, or with those it was started with where none are given.",
  options: startOptions,
  words: [0, 0],
  async run({ values }) {
    const config = configFor(values);
    const before = findInstance(config.paths.state);
    const { listen, yolo, "log-level": level } = values;
    const asked = listen !== undefined || yolo !== undefined || level !== undefined;
    await stopServer(config.paths.state);
    await sayStarted(await startServer(config, asked || !before ? asArguments(values) : before.arguments));
    return 0;
  },
});

async function sayStarted({ pid, addresses, damage }: Instance): Promise<void> {
  for (const sentence of damage) await writeError(`olliesrv: ${sentence}\n`);
  await writeOut(`olliesrv runs as process ${pid} on ${addresses.join(" and ")}\n`);
}

export const stop = command({
  usage: "[OPTIONS]",
  about:
    "Ends the server: turns are interrupted and saved first. Background jobs go on and are named. It is no error if none runs.",
  options: whichOptions,
  words: [0, 0],
  async run({ values }) {
    const { state } = whereabouts(values).paths;
    const pid = await stopServer(state);
    await writeOut(pid === undefined ? "olliesrv does not run\n" : `olliesrv (process ${pid}) has ended\n`);
    await writeOut(jobsThatGoOn(state));
    return 0;
  },
});

/** Jobs that are named; the others are only counted. */
const fewJobs = 5;

function jobsThatGoOn(state: string): string {
  const jobs = runningJobs(state);
  if (jobs.length === 0) return "";
  const named = jobs
    .slice(0, fewJobs)
    .map(
      ({ session, id, record }) =>
        `session/${session}/job/${id} (${record.tool}: ${oneLine(record.command)})`,
    );
  const rest = jobs.length > fewJobs ? [`and ${jobs.length - fewJobs} more`] : [];
  return `${jobs.length} ${jobs.length === 1 ? "job goes" : "jobs go"} on: ${[...named, ...rest].join(", ")}\n`;
}

/** A command as it may be shown on a terminal. */
function oneLine(command: string): string {
  const line = visible(command);
  return line.length > 60 ? `${line.slice(0, 59)}…` : line;
}

export const reload = command({
  usage: "[OPTIONS]",
  about:
    "Makes the server read its env file and configs again. One that makes no sense is refused and changes nothing.",
  options: whichOptions,
  words: [0, 0],
  async run({ values }) {
    const running = findInstance(configFor(values).paths.state);
    if (!running) throw notRunning();
    process.kill(running.pid, "SIGHUP");
    await writeOut(`olliesrv (process ${running.pid}) reads its configuration again\n`);
    return 0;
  },
});

const statusOptions = { ...whichOptions, json: { type: "boolean", help: "print JSON" } } as const;

export const status = command({
  usage: "[OPTIONS] [--json]",
  about: "Says whether the server runs and where it can be reached. Status 1 if it does not run.",
  options: statusOptions,
  words: [0, 0],
  async run({ values }) {
    const config = whereabouts(values);
    const { state } = config.paths;
    const running = findInstance(state);
    const answer = running?.addresses[0] ? await ask(running.addresses[0]) : undefined;
    const report = {
      running: running !== undefined,
      ...(running && { pid: running.pid }),
      addresses: running ? running.addresses : listenAddresses(config, {}),
      ...answer,
      damage: running?.damage ?? [],
      state,
      config: config.paths.config,
      log: logFile(config),
    };
    if (values.json) {
      await writeOut(`${JSON.stringify(report, null, 2)}\n`);
      return running ? 0 : 1;
    }
    if (!running) throw notRunning();
    const { version = "does not answer", sessions = "unknown" } = answer ?? {};
    const lines = [
      ["pid", running.pid],
      ["address", running.addresses.join(" ")],
      ["version", version],
      ["sessions", sessions],
      ...running.damage.map((sentence) => ["", sentence]),
      ["state", state],
      ["config", config.paths.config],
      ["log", logFile(config)],
    ];
    await writeOut(lines.map(([what, value]) => `${`${what}`.padEnd(8)}  ${value}\n`).join(""));
    return 0;
  },
});

/** What the server says of itself, or undefined if it does not answer in time. */
async function ask(address: string): Promise<{ version: string; sessions: number } | undefined> {
  const signal = AbortSignal.timeout(answerLimit);
  try {
    const client = await dial(address);
    try {
      const text = await client.readText("version", signal);
      const idx = await client.readText("session/idx", signal);
      const field = (name: string) => new RegExp(`^${name}:? (.*)$`, "m").exec(text)?.[1] ?? "unknown";
      const sessions = new Set(idx.split("\n").flatMap((line) => line.split("\t")[0] || []));
      return { version: `${field("version")} (${field("commit")})`, sessions: sessions.size };
    } finally {
      client.close();
    }
  } catch {
    return undefined;
  }
}

function notRunning(): Fault {
  return new Fault("unavailable", "the server does not run: olliesrv start");
}
