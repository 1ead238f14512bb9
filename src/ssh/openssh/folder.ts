/** The private folder of one ssh master: its socket, its configuration, the socket of its askpass. */
import { chmodSync, lstatSync, mkdirSync, mkdtempSync, readdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import { sshFault } from "../fault.ts";

/** `sun_path` has 108 bytes with the final zero, and ssh puts 17 behind the name until the master stands. */
const longest = 107 - 17;
/** For a master that may be stuck. Milliseconds. */
const limit = 2000;
const prefix = "ssh.";

export const names = { control: "c", askpass: "a", config: "config", program: "ollie-askpass" };

/**
 * A new one, below the runtime folder, or below /tmp where that would make the sockets' paths too long. Those that processes have left
 * behind which are gone go with it.
 * @param program for `ssh -O`
 * @throws Fault `ssh.config`
 */
export async function makeFolder(program: string): Promise<string> {
  let reason = "";
  for (const base of bases()) {
    const path = join(base, `${prefix}${process.pid}.`);
    if (Buffer.byteLength(join(`${path}XXXXXX`, names.control)) > longest) continue;
    try {
      privateFolder(base);
      await sweep(base, program);
      return mkdtempSync(path);
    } catch (error) {
      reason = (error as Error).message;
    }
  }
  throw sshFault("ssh.config", `there is no private folder for the sockets of ssh: ${reason}`, {
    hint: "XDG_RUNTIME_DIR should name a folder of yours with mode 0700",
  });
}

function bases(): string[] {
  const runtime = process.env.XDG_RUNTIME_DIR;
  return [...(runtime ? [join(runtime, "ollie")] : []), `/tmp/ollie-${process.getuid!()}`];
}

/** Anybody can make a folder in /tmp before us. */
function privateFolder(path: string): void {
  mkdirSync(path, { recursive: true, mode: 0o700 });
  const { uid } = lstatSync(path);
  if (!lstatSync(path).isDirectory() || uid !== process.getuid!()) throw new Error(`${path} is not ours`);
  chmodSync(path, 0o700);
}

async function sweep(base: string, program: string): Promise<void> {
  const left = readdirSync(base).filter((name) => {
    const [, pid] = /^ssh\.(\d+)\./.exec(name) ?? [];
    return pid !== undefined && !lives(Number(pid));
  });
  await Promise.all(
    left.map(async (name) => {
      const folder = join(base, name);
      const pid = await masterOf(program, join(folder, names.control));
      if (pid !== undefined) stop(pid);
      rmSync(folder, { recursive: true, force: true });
    }),
  );
}

/** Process of the master that listens at a control socket, `ssh -O check`; undefined where none answers. */
export async function masterOf(program: string, control: string): Promise<number | undefined> {
  const child = Bun.spawn([program, "-F", "none", "-S", control, "-O", "check", "--", "master"], {
    env: { ...process.env },
    stdio: ["ignore", "ignore", "pipe"],
    timeout: limit,
  });
  const [text] = await Promise.all([child.stderr.text(), child.exited]);
  const [, pid] = /\(pid=(\d+)\)/.exec(text) ?? [];
  return pid === undefined ? undefined : Number(pid);
}

function lives(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return (error as { code?: string }).code === "EPERM";
  }
}

function stop(pid: number): void {
  try {
    process.kill(pid, "SIGTERM");
  } catch {
    // has ended
  }
}
