import { setDefaultTimeout } from "bun:test";
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type RunOptions, run } from "../../src/exec/process.ts";

export { until } from "../until.ts";

// Many of these tests start dozens of processes, on machines that have other things to do.
setDefaultTimeout(60_000);

/** A folder that is gone when the test process ends. */
export function folder(): string {
  const path = mkdtempSync(join(tmpdir(), "ollie-exec-"));
  process.on("exit", () => rmSync(path, { recursive: true, force: true }));
  return path;
}

/** Runs a command line with /bin/sh. */
export function sh(command: string, options: Partial<RunOptions> = {}) {
  return run({
    argv: ["/bin/sh", "-c", command],
    cwd: "/",
    env: { PATH: process.env.PATH! },
    stdin: "",
    timeout: 60_000,
    signal: new AbortController().signal,
    spill: join(folder(), "out"),
    ...options,
  });
}

/** Whether a process runs; a zombie does not. */
export function runs(pid: number): boolean {
  if (!existsSync(`/proc/${pid}/stat`)) return false;
  try {
    return !/\) [ZX] /.test(readFileSync(`/proc/${pid}/stat`, "latin1"));
  } catch {
    return false;
  }
}

/** Living processes whose environment (`environ`) or command line (`cmdline`) holds the text. */
export function processesWith(text: string, where: "environ" | "cmdline"): number[] {
  return readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name))
    .map(Number)
    .filter((pid) => {
      try {
        return readFileSync(`/proc/${pid}/${where}`, "latin1").includes(text);
      } catch {
        return false;
      }
    });
}

/** The pids that a command wrote to a file, one a line. */
export function pidsIn(file: string): number[] {
  return existsSync(file) ? readFileSync(file, "utf8").trim().split(/\s+/).map(Number) : [];
}
