/** Processes, as /proc shows them: the rig looks for its own by the namespaces that they are in. */
import { readdirSync, readFileSync, readlinkSync } from "node:fs";

export interface Process {
  pid: number;
  parent: number;
  /** Its id in the innermost namespace: what it is called on its host. */
  inner: number;
  uid: number;
  /** `R`, `S`, `Z` … */
  state: string;
  argv: string[];
  /** What the kernel calls its namespaces: `net:[4026531840]`. */
  net: string;
  pids: string;
}

/** All that are alive; those that end meanwhile are left out. */
export function processes(): Process[] {
  return readdirSync("/proc").flatMap((name) => {
    if (!/^\d+$/.test(name)) return [];
    const found = processOf(Number(name));
    return found && found.state !== "Z" ? [found] : [];
  });
}

export function processOf(pid: number): Process | undefined {
  const folder = `/proc/${pid}`;
  try {
    const status = readFileSync(`${folder}/status`, "utf8");
    const field = (name: string) => new RegExp(`^${name}:\\s*(.*)$`, "m").exec(status)![1]!.split(/\s+/);
    return {
      pid,
      parent: Number(field("PPid")[0]),
      inner: Number(field("NSpid").at(-1)),
      uid: Number(field("Uid")[1]),
      state: field("State")[0]!,
      argv: readFileSync(`${folder}/cmdline`, "utf8").split("\0").slice(0, -1),
      net: readlinkSync(`${folder}/ns/net`),
      pids: readlinkSync(`${folder}/ns/pid`),
    };
  } catch {
    return undefined; // it has ended
  }
}

/** A variable of the environment that a process was started with. */
export function variableOf(pid: number, name: string): string | undefined {
  try {
    const words = readFileSync(`/proc/${pid}/environ`, "utf8").split("\0");
    return words.find((word) => word.startsWith(`${name}=`))?.slice(name.length + 1);
  } catch {
    return undefined;
  }
}

/** Sends a signal to a process that may have ended. */
export function signal(pid: number, name: NodeJS.Signals): void {
  try {
    process.kill(pid, name);
  } catch {}
}
