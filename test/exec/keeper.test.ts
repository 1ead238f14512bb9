import { describe, expect, test } from "bun:test";
import { join } from "node:path";
import { markName, sweepStale } from "../../src/exec/family.ts";
import { folder, pidsIn, processesWith, runs, until } from "./helper.ts";

/** A server in a process of its own. `run` starts a command line that writes two pids to a file in place of PIDS. */
function startServer(env: Record<string, string> = {}) {
  const child = Bun.spawn([process.execPath, join(import.meta.dir, "server.ts")], {
    stdin: "pipe",
    stdout: "pipe",
    stderr: "inherit",
    env: { ...process.env, ...env },
  });
  const run = async (command: string): Promise<number[]> => {
    const file = join(folder(), "pids");
    child.stdin.write(`${command.replaceAll("PIDS", file)}\n`);
    child.stdin.flush();
    await until("the program runs", () => pidsIn(file).length === 2);
    return pidsIn(file);
  };
  const keeper = () => processesWith(`ollie-keeper\0/${child.pid}-`, "cmdline");
  return { child, run, keeper };
}

describe("when the server goes", () => {
  test.each(["SIGKILL", "SIGTERM"] as const)("by %s, no program stays, however it hid", async (signal) => {
    const { child, run, keeper } = startServer();
    const pids = [
      await run("sleep 311 & echo $$ $! >PIDS; wait"),
      await run("trap '' TERM HUP; setsid sh -c 'sleep 312 & echo $$ $! >PIDS; wait' & wait"),
      await run("setsid sh -c 'sleep 313 & echo $$ $! >PIDS; wait' </dev/null >/dev/null 2>&1 & sleep 313"),
      await run("env -i setsid sh -c 'sleep 314 & echo $$ $! >PIDS; wait' & wait"),
    ].flat();
    child.kill(signal);
    await until(
      "all programs are gone",
      () => !pids.some(runs) && processesWith(`/${child.pid}-`, "environ").length === 0,
    );
    await until("the keeper is gone", () => keeper().length === 0);
  });

  test("and its keeper was killed too, the next start ends what is left", async () => {
    const { child, run, keeper } = startServer();
    const pids = [
      await run("sleep 321 & echo $$ $! >PIDS; wait"),
      await run("env -i setsid sh -c 'sleep 322 & echo $$ $! >PIDS; wait' & wait"),
    ].flat();
    for (const pid of keeper()) process.kill(pid, "SIGKILL");
    child.kill("SIGKILL");
    await child.exited;
    expect(pids.every(runs)).toBe(true);
    expect(sweepStale()).toBeGreaterThan(0);
    await until("all programs are gone", () => !pids.some(runs));
  });

  test("a start leaves the programs of a living server alone", async () => {
    const { child, run } = startServer();
    const pids = await run("sleep 331 & echo $$ $! >PIDS; wait");
    sweepStale();
    expect(pids.every(runs)).toBe(true);
    child.kill("SIGKILL");
    await until("all programs are gone", () => !pids.some(runs));
  });

  test("a keeper that was killed has been replaced by the next call", async () => {
    const { child, run, keeper } = startServer();
    const pids = await run("sleep 341 & echo $$ $! >PIDS; wait");
    const first = keeper();
    for (const pid of first) process.kill(pid, "SIGKILL");
    await until("the keeper is gone", () => !first.some(runs));
    // The server hears of its keeper's death a moment after us; from then on every call has one again.
    while (keeper().length === 0) pids.push(...(await run("sleep 342 & echo $$ $! >PIDS; wait")));
    child.kill("SIGKILL");
    await until("all programs are gone", () => !pids.some(runs));
  });
});

test("the mark of an outer call stays in the environment of an inner one", async () => {
  const { child } = startServer({ [markName]: "/1-1/9/" });
  child.stdin.write(`echo "$${markName}"\n`);
  child.stdin.flush();
  const { value } = await child.stdout.getReader().read();
  child.kill("SIGKILL");
  expect(new TextDecoder().decode(value)).toMatch(new RegExp(`^/1-1/9//${child.pid}-\\d+/1/\n`));
});
