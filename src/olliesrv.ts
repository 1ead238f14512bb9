#!/usr/bin/env bun
/**
 * The server's program, which is also what runs TypeScript tools, `olliesrv ollie-run FILE`, and what supervises a job, `olliesrv
 * job-supervisor`.
 */
const argv = process.argv.slice(2);
if (argv[0] === "ollie-run" && argv.length === 2) {
  const { runToolFile } = await import("./tools/runner.ts");
  // The tool's process ends by itself, when nothing of the tool runs any more.
  await runToolFile(argv[1]!);
} else if (argv[0] === "job-supervisor" && argv.length === 1) {
  const { supervise } = await import("./exec/job/supervisor.ts");
  await supervise();
  process.exit(0);
} else {
  // Not loaded by the tools above, of which there are many.
  const { runProgram } = await import("./cli/program.ts");
  const { olliesrv } = await import("./cli/server/program.ts");
  process.exit(await runProgram(olliesrv, argv));
}

export {};
