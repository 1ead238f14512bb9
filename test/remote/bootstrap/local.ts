/** A host without SSH: what a login shell on this machine makes of a command, with a home of its own; and programs for it that are small. */
import { spawn } from "node:child_process";
import { chmodSync, existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { boot } from "../../../src/remote/bootstrap/boot.ts";
import type { Booted, BootOptions, Progress } from "../../../src/remote/bootstrap/bootstrap.ts";
import type { SshChannel, SshConnection } from "../../../src/ssh/transport.ts";

export interface HostOptions {
  /** Argument vector that `-c COMMAND` is put behind. */
  shell?: string[];
  /** Commands of a shell that are run before, in a mount namespace of its own: bad file systems. */
  mounts?: string;
  env?: Record<string, string>;
}

export class Host {
  readonly folder = mkdtempSync(join(tmpdir(), "ollie-boot-"));
  readonly home = join(this.folder, "home");
  /** Of every exec, in order. */
  readonly commands: string[] = [];
  readonly connection: SshConnection;
  /** Is asked before each piece is written to a program. */
  onWrite: (channel: SshChannel, total: number) => void = () => {};
  readonly #pids = new Set<number>();

  constructor(private readonly options: HostOptions = {}) {
    mkdirSync(this.home);
    this.connection = {
      via: "ssh2",
      exec: async (command) => this.#exec(command),
      closed: new Promise(() => {}),
      probe: async () => {},
      close: () => {},
    };
  }

  get bin(): string {
    return join(this.home, ".cache/ollie/bin");
  }

  /** Names in the folder of programs, hidden ones too. */
  installed(): string[] {
    return existsSync(this.bin) ? readdirSync(this.bin).sort() : [];
  }

  boot(options: Partial<BootOptions> & Pick<BootOptions, "programs">): Promise<Booted> {
    return boot(this.connection, {
      onProgress: () => {},
      signal: new AbortController().signal,
      stall: 20_000,
      ...options,
    });
  }

  remove(): void {
    for (const pid of this.#pids) endGroup(pid);
    rmSync(this.folder, { recursive: true, force: true });
  }

  #exec(command: string): SshChannel {
    this.commands.push(command);
    const { shell = ["/bin/sh"], mounts, env } = this.options;
    const inside = ["unshare", "-m", "--propagation", "private", "sh", "-c", `${mounts}\nexec "$@"`, "sh"];
    const [program, ...args] = [...(mounts ? inside : []), ...shell, "-c", command];
    const child = spawn(program!, args, {
      cwd: this.folder,
      detached: true,
      env: { PATH: "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", HOME: this.home, ...env },
    });
    if (child.pid === undefined) throw new Error(`${program} cannot be started`);
    const { pid } = child;
    this.#pids.add(pid);
    // At once, with what it has left behind: some time later its number may be another's.
    child.on("exit", () => {
      endGroup(pid);
      this.#pids.delete(pid);
    });
    let stderr = "";
    child.stderr.on("data", (bytes) => {
      stderr += bytes;
    });
    child.stdin.on("error", () => {});
    let total = 0;
    const channel: SshChannel = {
      stdout: child.stdout,
      stderr: () => stderr,
      get buffered() {
        return child.stdin.writableLength;
      },
      write: (bytes) => {
        total += bytes.length;
        this.onWrite(channel, total);
        return new Promise((resolve) => {
          if (child.stdin.write(bytes)) resolve();
          else child.stdin.once("drain", resolve);
        });
      },
      end: () => child.stdin.end(),
      // With its output: what it said last counts.
      closed: new Promise((resolve) =>
        child.on("close", (code, signal) =>
          resolve({ code: code ?? undefined, signal: signal ?? undefined }),
        ),
      ),
      // As sshd: the pipes go, and nobody is told.
      close: () => {
        child.stdin.destroy();
        child.stdout.destroy();
      },
    };
    return channel;
  }
}

/**
 * A folder with an `ollie-remote-linux-x64` (and whatever else is named) that is a shell script of some megabytes: it answers as the real one
 * does, to `serve` with `hello VERSION` and then what it reads. Which mask for new files it runs under is in the home's `mask`.
 */
export function programs(
  into: string,
  { version = "1", mib = 9, names = ["linux-x64", "linux-arm64"], answer = "" } = {},
): string {
  mkdirSync(into, { recursive: true });
  for (const name of names) {
    const says = answer || `ollie-remote 0.0.${version} ${name}`;
    const script = `#!/bin/sh\ncase $1 in --ok) echo "${says}" ;; serve) shift; umask > "$HOME/mask"; echo "hello ${version} $*"; cat ;; esac\nexit 0\n`;
    const file = join(into, `ollie-remote-${name}`);
    writeFileSync(file, Buffer.concat([Buffer.from(script), filling(mib * 1024 * 1024 - 1000)]));
    chmodSync(file, 0o755);
  }
  return into;
}

/** Bytes that do not pack well, the same at every call. */
function filling(length: number): Buffer {
  const bytes = Buffer.alloc(length);
  let seed = 12345;
  for (let at = 0; at + 4 <= length; at += 4) {
    seed = (Math.imul(seed, 1664525) + 1013904223) >>> 0;
    bytes.writeUInt32LE(seed, at);
  }
  return bytes;
}

/** What the program prints first. */
export async function hello({ stdout, channel }: Booted): Promise<string> {
  let text = "";
  for await (const bytes of stdout) {
    text += Buffer.from(bytes).toString();
    if (text.includes("\n")) break;
  }
  channel.close();
  return text.trim();
}

/** Keeps what is told of progress. */
export function watched(): { all: Progress[]; onProgress: (progress: Progress) => void } {
  const all: Progress[] = [];
  return { all, onProgress: (progress) => void all.push(progress) };
}

function endGroup(pid: number): void {
  try {
    process.kill(-pid, "SIGKILL");
  } catch {
    // Has ended.
  }
}
