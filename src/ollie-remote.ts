#!/usr/bin/env bun
/**
 * What runs on other hosts: brought there and started by olliesrv. Also what runs TypeScript tools and supervises jobs there, as `olliesrv`
 * does here. `--ok`: whoever has brought it asks whether it runs.
 */
const argv = process.argv.slice(2);
if (argv[0] === "ollie-run" && argv.length === 2) {
  const { runToolFile } = await import("./tools/runner.ts");
  await runToolFile(argv[1]!);
} else if (argv[0] === "job-supervisor" && argv.length === 1) {
  const { supervise } = await import("./exec/job/supervisor.ts");
  await supervise();
  process.exit(0);
} else if (argv[0] === "--ok") {
  const { build } = await import("./config/version.ts");
  console.log(`ollie-remote ${build.version} ${build.target}`);
} else {
  const { runProgram } = await import("./cli/program.ts");
  const { ollieRemote } = await import("./cli/remote/program.ts");
  process.exit(await runProgram(ollieRemote, argv));
}

export {};
