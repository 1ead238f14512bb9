/** Running a tool's program by itself, as a call that was let out of the sandbox would. */
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { folder, shippedTools } from "./helper.ts";

/** HOME, working folder and TMPDIR of the programs. */
export const dir = folder();
/** Their XDG_RUNTIME_DIR. */
export const runtime = join(dir, "run");
mkdirSync(runtime, { mode: 0o700 });

export interface Ran {
  output: string;
  errors: string;
  status: number;
}

export async function runTool(
  program: string,
  args: Record<string, unknown>,
  env: Record<string, string> = {},
  words: string[] = [],
): Promise<Ran> {
  const path = join(shippedTools, program);
  const scalars = Object.entries(args).flatMap(([name, value]) =>
    Array.isArray(value) ? [] : [[`OLLIE_ARG_${name.toUpperCase()}`, String(value)]],
  );
  const runner = [process.execPath, join(import.meta.dir, "../../src/tools/ollie-run.ts"), path];
  const tool = Bun.spawn([...(program.endsWith(".ts") ? runner : [path]), ...words], {
    stdin: Buffer.from(JSON.stringify(args)),
    stdout: "pipe",
    stderr: "pipe",
    cwd: dir,
    env: {
      PATH: process.env.PATH,
      HOME: dir,
      TMPDIR: dir,
      XDG_RUNTIME_DIR: runtime,
      OLLIE_SESSION: "lab",
      OLLIE_AGENT: "helper",
      ...Object.fromEntries(scalars),
      ...env,
    },
  });
  const [output, errors, status] = await Promise.all([tool.stdout.text(), tool.stderr.text(), tool.exited]);
  return { output, errors, status };
}

/** PATH with a program in front that writes down its words, one a line, and then does as it is told. */
export function fakeProgram(name: string, then: string): { PATH: string; said(): string[] } {
  const bin = join(folder(), "bin");
  mkdirSync(bin);
  writeFileSync(join(bin, name), `#!/bin/sh\nprintf '%s\\n' "$@" >"${bin}/said"\n${then}\n`, { mode: 0o755 });
  return {
    PATH: `${bin}:${process.env.PATH}`,
    said: () => readFileSync(join(bin, "said"), "utf8").split("\n").slice(0, -1),
  };
}
