/** The bridge's way to a session's daemon: finds the one that runs, or starts one. */
import { closeSync, existsSync, openSync } from "node:fs";
import { join } from "node:path";
import { compiled, ownExactCommand, ownProgram } from "../../exec/own.ts";
import { toFault } from "../../fault.ts";
import { coded } from "../protocol/errors.ts";
import { type DaemonFile, readDaemonFile } from "./daemon-file.ts";
import { type Places, sessionFolder } from "./places.ts";
import { SocketLink } from "./socket-link.ts";

/** Milliseconds in which a daemon must be there; it may have to read a long journal first. */
const patience = 20_000;
/** What `ollie-remote daemon` prints when bridges can connect. */
export const readyLine = "ready";
/** Its exit status where another daemon runs for the session. */
export const runsAlready = 3;

const program = compiled
  ? ownExactCommand()
  : [ownProgram(), "--config=/dev/null", "--no-env-file", join(import.meta.dir, "../../ollie-remote.ts")];

export interface DaemonLink {
  link: SocketLink;
  file: DaemonFile;
}

/** @throws CodedFault `session.daemon` with what the daemon has said */
export async function reachDaemon(places: Places, sessionId: string): Promise<DaemonLink> {
  const folder = sessionFolder(places.root, sessionId);
  const end = Date.now() + patience;
  for (;;) {
    const found = await connected(folder);
    if (found) return found;
    const problem = await start(places, sessionId, folder);
    const started = await connected(folder);
    if (started) return started;
    if (problem || Date.now() > end)
      throw coded(
        "session.daemon",
        `the session's daemon could not be started: ${problem ?? "it does not answer"}`,
      );
    // Another bridge has been first, and its daemon is about to be there.
    await Bun.sleep(50);
  }
}

async function connected(folder: string): Promise<DaemonLink | undefined> {
  const file = readDaemonFile(folder);
  if (!file) return undefined;
  try {
    return { link: await SocketLink.connect(file.socket), file };
  } catch {
    return undefined;
  }
}

/** Resolves when it is ready, or with why it is not; undefined too where another runs. */
async function start(
  { root, base, policy }: Places,
  sessionId: string,
  folder: string,
): Promise<string | undefined> {
  const flags = ["--root", root, "--base", base, ...(policy ? ["--policy", policy] : [])];
  const log = openSync(join(folder, "daemon.log"), "a", 0o600);
  try {
    const child = Bun.spawn([...withScope(), ...program, "daemon", ...flags, sessionId], {
      cwd: "/",
      env: process.env as Record<string, string>,
      stdin: "ignore",
      stdout: "pipe",
      stderr: log,
      detached: true,
    });
    child.unref();
    const reader = child.stdout.getReader();
    let said = "";
    const told = (async () => {
      for (;;) {
        const { value, done } = await reader.read();
        if (done) return;
        said += new TextDecoder().decode(value);
        if (said.includes("\n")) return;
      }
    })();
    await Promise.race([told, Bun.sleep(patience)]);
    reader.cancel().catch(() => {});
    if (said.startsWith(readyLine)) return undefined;
    const status = await Promise.race([child.exited, Bun.sleep(500)]);
    if (status === runsAlready) return undefined;
    return said.trim() || `it has ended with status ${status}; ${join(folder, "daemon.log")} may tell more`;
  } catch (error) {
    return toFault(error).message;
  } finally {
    closeSync(log);
  }
}

/** Out of the login's scope, where systemd has one for each and may end it with the login. */
function withScope(): string[] {
  const { XDG_RUNTIME_DIR } = process.env;
  const program = Bun.which("systemd-run");
  if (!program || !XDG_RUNTIME_DIR || !existsSync(join(XDG_RUNTIME_DIR, "systemd/private"))) return [];
  return [program, "--user", "--scope", "--quiet", "--collect", "--"];
}
