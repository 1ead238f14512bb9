import { describe, expect, test } from "bun:test";
import { join } from "node:path";
import { processesWith, sh } from "./helper.ts";

/** Enough to meet, now and then, a process in the middle of a fork or an exec. */
const rounds = 3;
/** Calls at once: they shall neither be mistaken for each other nor take all day. */
const batch = 20;

/** What outlives its call unless it is looked for; SLEEP stands for a program that runs for an hour. */
const escapees: Record<string, string> = {
  "in a session of its own": "(setsid SLEEP >/dev/null 2>&1 &)",
  "that hangs on to the output": "(setsid SLEEP &)",
  "with nohup": "(nohup SLEEP >/dev/null 2>&1 &)",
  "with nohup that ignores TERM and HUP": "trap '' TERM HUP; (setsid nohup SLEEP >/dev/null 2>&1 &)",
  "that forks twice": "(setsid sh -c '(SLEEP >/dev/null 2>&1 &)' &)",
  "that leaves the folder, the session and the output":
    "(setsid sh -c 'cd /; setsid SLEEP & exit' </dev/null >/dev/null 2>&1 &)",
  "without its environment": "(env -i /usr/bin/env setsid SLEEP &)",
  "with another tag, in a session of its own": "bash -c 'ulimit -S -x 4; setsid SLEEP >/dev/null 2>&1 &'",
  "with another tag and without its environment": "bash -c 'ulimit -S -x 4; env -i SLEEP >/dev/null 2>&1 &'",
  "without its environment and output": "(setsid env -i /bin/sh -c 'SLEEP; :' >/dev/null 2>&1 &)",
};

describe("no process survives its call", () => {
  test.each(Object.entries(escapees))("%s", async (_name, command) => {
    for (let round = 0; round < rounds; round++) {
      const sleep = unusualSleep();
      const line = `${command.replace("SLEEP", sleep)}; echo ok`;
      const results = await Promise.all(Array.from({ length: batch }, () => sh(line)));
      expect(killed(sleep)).toEqual([]);
      expect(results.map(({ text }) => text)).toEqual(Array(batch).fill("ok\n"));
    }
  });

  test("nor the death of a server that the call had started", async () => {
    const sleep = unusualSleep();
    const { ended, text } = await inner(`
      process.on("SIGTERM", () => {});
      await sh("echo started; exec ${sleep} >/dev/null 2>&1", { onOutput: say });`);
    expect(killed(sleep)).toEqual([]);
    expect({ ended, text }).toEqual({ ended: "cancelled", text: "started\n" });
  });

  test("where the system has no tags, by its session and environment", async () => {
    const sleep = unusualSleep();
    const { text } = await inner(`
      const { setLockLimit } = await import("${source}/libc.ts");
      setLockLimit(Uint32Array.of(1, 0, 1, 0)); // the hard limit leaves no room for a tag
      for (const command of ["(setsid ${sleep} >/dev/null 2>&1 &)", "(env -i ${sleep} >/dev/null 2>&1 &)"])
        await sh(command + "; sleep 0.05");
      say(processesWith("${sleep.split(" ")[1]}\\0", "cmdline").join(" ") || "none");`);
    expect(text).toBe("none");
    expect(killed(sleep)).toEqual([]);
  });
});

const source = join(import.meta.dir, "../../src/exec");

/** Runs TypeScript as the program of a call, which is cancelled as soon as it says something. */
function inner(script: string) {
  const controller = new AbortController();
  const head = `
    const { processesWith, sh } = await import("${join(import.meta.dir, "helper.ts")}");
    const say = (text) => require("node:fs").writeSync(1, text);`;
  return sh("", {
    argv: [process.execPath, "-e", head + script],
    env: { ...process.env } as Record<string, string>,
    signal: controller.signal,
    onOutput: () => controller.abort(),
  });
}

/** A command line for an hour's sleep that is told from all others on the host by its length. */
function unusualSleep(): string {
  return `sleep 3600.${process.pid}${Math.floor(Math.random() * 1e9)}`;
}

/** Ends what runs such a command line and returns who that was. */
function killed(sleep: string): number[] {
  const pids = processesWith(`${sleep.replace(" ", "\0")}\0`, "cmdline");
  for (const pid of pids) process.kill(pid, "SIGKILL");
  return pids;
}
