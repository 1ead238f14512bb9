/** What runs as root, when sudo does with its stdin what was not expected. In a process namespace of its own: what is tested ends processes. */
import { afterEach, beforeEach, expect, test } from "bun:test";
import { chmodSync, existsSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { plainLaunch } from "../../src/exec/launch.ts";
import { asRoot } from "../../src/tools/sudo.ts";
import { lacks } from "../needs.ts";

const without = lacks("process namespaces", unshared(["true"]).exitCode === 0);

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "ollie-sudo-"));
  write("sudo", 'while [ "$1" != -- ]; do shift; done; shift; exec "$@"');
  write("tool", `cat > ${folder}/input`);
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

function write(name: string, script: string): void {
  writeFileSync(join(folder, name), `#!/bin/sh\n${script}\n`);
  chmodSync(join(folder, name), 0o755);
}

function unshared(argv: string[], env = {}) {
  const words = ["unshare", "--user", "--map-root-user", "--pid", "--fork", "--mount-proc", "--kill-child"];
  return Bun.spawnSync([...words, ...argv], { env: { PATH: "/usr/bin:/bin", ...env } });
}

/** stdin stays open until the program has ended, as a call's does; and somebody runs who has nothing to do with it. */
const beside = `
sleep 1000 & other=$!
{ cat input.sudo; until [ -e over ]; do sleep 0.02; done; } | { "$@"; echo "status $?"; touch over; }
kill $other && echo alive`;

/** By a sudo that reads nothing of its stdin. */
function run(password?: string) {
  const execution = {
    argv: [join(folder, "tool")],
    cwd: folder,
    env: { TMPDIR: folder, OLLIE_TOOL: "tool" },
    stdin: "{}",
    launch: plainLaunch(),
  };
  const access = { program: join(folder, "sudo"), ...(password && { password: Buffer.from(password) }) };
  const { argv, env, stdin } = asRoot(execution, access);
  writeFileSync(join(folder, "input.sudo"), stdin);
  const script = `cd ${folder} || exit${beside}`;
  return unshared(["sh", "-c", script, "sh", ...argv], env).stdout.toString();
}

test.skipIf(without)("a tool runs as root with its input where sudo wants no password", () => {
  expect(run()).toContain("status 0");
  expect(existsSync(join(folder, "input"))).toBe(true);
});

test.skipIf(without)(
  "a password that sudo has left unread is not executed, and ends nobody's processes",
  () => {
    const said = run(`touch ${folder}/executed`);
    expect(said).toContain("status 1");
    expect(said).toContain("alive");
    expect(existsSync(join(folder, "executed"))).toBe(false);
    expect(existsSync(join(folder, "input"))).toBe(false);
  },
);
