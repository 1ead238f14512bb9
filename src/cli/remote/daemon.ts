/** `ollie-remote daemon`. */
import { closeSync, openSync, writeSync } from "node:fs";
import { dup2 } from "../../exec/libc.ts";
import { Daemon, DaemonRuns } from "../../remote/host/daemon.ts";
import { readyLine, runsAlready } from "../../remote/host/daemon-process.ts";
import { placesOf } from "../../remote/host/places.ts";
import { command } from "../program.ts";

export const daemon = command({
  usage: "--root DIR --base DIR [--policy FILE] SESSION",
  about:
    "Keeps a session: its operations, its journal, its files. Ends when nobody has used the session for long.",
  options: {
    root: { type: "string", value: "DIR", help: "where sessions are kept" },
    base: { type: "string", value: "DIR", help: "where programs and tools are kept" },
    policy: { type: "string", value: "FILE", help: "the hard policy of this host" },
  },
  words: [1, 1],
  async run({ values, words }) {
    // The login that has started it may end.
    for (const signal of ["SIGHUP", "SIGINT", "SIGPIPE"] as const) process.on(signal, () => {});
    let running: Daemon;
    try {
      running = await Daemon.start(placesOf(process.env, values), words[0]!);
    } catch (error) {
      if (error instanceof DaemonRuns) return runsAlready;
      say((error as Error).message.replaceAll("\n", " "));
      return 1;
    }
    process.on("SIGTERM", () => void running.stop());
    say(readyLine);
    letGoOfStdout();
    await running.ended;
    return 0;
  },
});

function say(line: string): void {
  try {
    writeSync(1, `${line}\n`);
  } catch {
    // The bridge has gone; the next one finds the daemon all the same.
  }
}

/** Whoever waits for the end of what the bridge prints must not wait for the daemon's. */
function letGoOfStdout(): void {
  const nothing = openSync("/dev/null", "w");
  dup2(nothing, 1);
  closeSync(nothing);
}
