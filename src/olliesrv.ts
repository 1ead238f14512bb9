#!/usr/bin/env bun
/**
 * The server's program, which is also what runs TypeScript tools, `olliesrv ollie-run FILE`, what supervises a job, `olliesrv
 * job-supervisor`, what opens SSH keys with a passphrase, `olliesrv ssh-key`, and what the ssh program asks for one.
 */
const argv = process.argv.slice(2);
// ssh has only a path for it, no arguments: this program is then a link of that name.
if (process.env.SSH_ASKPASS !== undefined && process.argv0 === process.env.SSH_ASKPASS) {
  const { runAskpass } = await import("./ssh/openssh/askpass-program.ts");
  process.exit(await runAskpass(argv[0] ?? ""));
} else if (argv[0] === "ollie-run" && argv.length === 2) {
  const { runToolFile } = await import("./tools/runner.ts");
  // The tool's process ends by itself, when nothing of the tool runs any more.
  await runToolFile(argv[1]!);
} else if (argv[0] === "job-supervisor" && argv.length === 1) {
  const { supervise } = await import("./exec/job/supervisor.ts");
  await supervise();
  process.exit(0);
} else if (argv[0] === "ssh-key" && argv.length === 1) {
  const { answerLocked } = await import("./ssh/keys/locked-main.ts");
  await answerLocked();
} else {
  // Not loaded by the tools above, of which there are many.
  const { runProgram } = await import("./cli/program.ts");
  const { olliesrv } = await import("./cli/server/program.ts");
  process.exit(await runProgram(olliesrv, argv));
}

export {};
