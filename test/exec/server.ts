/** Stands in for a server: runs every line of its input as a command line, passes on what comes, and stays. */
import { tmpdir } from "node:os";
import { join } from "node:path";
import { run } from "../../src/exec/process.ts";

for await (const command of console) {
  run({
    argv: ["/bin/sh", "-c", command],
    cwd: "/",
    env: { PATH: process.env.PATH! },
    stdin: "",
    timeout: 600_000,
    signal: new AbortController().signal,
    spill: join(tmpdir(), `ollie-never-${process.pid}`),
    onOutput: (text) => process.stdout.write(text),
  });
}
