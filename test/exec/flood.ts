/** Runs a program that prints 200 MB and reports what became of it, and this process's own peak of memory in bytes. */
import { readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { run } from "../../src/exec/process.ts";

const spill = join(process.argv[2]!, "out");
const result = await run({
  argv: ["/bin/sh", "-c", "yes | head -c 200M; echo end; exit 7"],
  cwd: "/",
  env: { PATH: process.env.PATH! },
  stdin: "",
  timeout: 60_000,
  signal: new AbortController().signal,
  spill,
});
const peak = Number(readFileSync("/proc/self/status", "utf8").match(/VmHWM:\s+(\d+)/)![1]) * 1024;
console.log(
  JSON.stringify({
    code: result.code,
    bytes: result.bytes,
    tail: result.text.slice(-4),
    kept: statSync(spill).size,
    peak,
  }),
);
