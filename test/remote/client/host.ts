/**
 * A host without SSH: `ollie-remote serve` of this checkout, run on this machine with a home of its own over a made-up connection. Bridge, daemon
 * and link can be ended one by one, as on a bad day.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Fault } from "../../../src/fault.ts";
import type { Boot } from "../../../src/remote/bootstrap/bootstrap.ts";
import { Connections } from "../../../src/remote/client/connections.ts";
import { coded } from "../../../src/remote/protocol/errors.ts";
import type { Connect, SshChannel, SshConnection } from "../../../src/ssh/transport.ts";

const program = join(import.meta.dir, "../../../src/ollie-remote.ts");

export class FakeHost {
  readonly folder = mkdtempSync(join(tmpdir(), "ollie-host-"));
  readonly home = join(this.folder, "home");
  /** Where a session of a test works. */
  readonly project = join(this.folder, "project");
  /** The network is there; false: connecting fails, in a way that passes. */
  reachable = true;
  /** Connections that were made. */
  dialled = 0;
  readonly connections = new Connections(this.connect);
  readonly #open = new Set<FakeChannel>();
  readonly #lost = new Set<(fault: Fault) => void>();

  constructor() {
    mkdirSync(this.home);
    mkdirSync(this.project);
    mkdirSync(join(this.folder, "run"), { mode: 0o700 });
  }

  /** In the place of the bootstrap: the program is there. */
  get boot(): Boot {
    return async (connection) => {
      const channel = await connection.exec("");
      return { channel, stdout: channel.stdout, digest: "0".repeat(64), hit: true, uploaded: 0, notes: [] };
    };
  }

  get connect(): Connect {
    return async (target) => {
      this.dialled++;
      if (!this.reachable) throw coded("ssh.unreachable", `no way to ${target.name}`, { retry: true });
      const { promise, resolve } = Promise.withResolvers<Fault | undefined>();
      this.#lost.add(resolve);
      const channels = new Set<FakeChannel>();
      const connection: SshConnection = {
        via: "ssh2",
        hostKey: "SHA256:made-up",
        exec: async () => {
          if (!this.reachable) throw coded("ssh.dropped", `${target.name} is gone`, { retry: true });
          const channel = this.#serve();
          channels.add(channel);
          return channel;
        },
        closed: promise,
        probe: async () => {},
        close: () => {
          for (const channel of channels) channel.close();
          resolve(undefined);
        },
      };
      return connection;
    };
  }

  /** The connection breaks; sshd notices, and ends the bridge's stdin. */
  dropLink(): void {
    const fault = coded("ssh.dropped", "the connection has been lost", { retry: true });
    for (const channel of this.#open) channel.drop(fault);
    for (const lose of this.#lost) lose(fault);
    this.#lost.clear();
  }

  killBridges(): void {
    for (const channel of this.#open) channel.kill();
  }

  /** SIGKILL to the daemons of all sessions. */
  killDaemons(): void {
    for (const pid of this.#daemons()) end(pid);
  }

  get sessions(): string[] {
    const folder = join(this.folder, "root/sessions");
    return existsSync(folder) ? readdirSync(folder) : [];
  }

  remove(): void {
    // Whoever still wants to get here finds out that nobody is.
    this.reachable = false;
    for (const channel of this.#open) channel.kill();
    this.killDaemons();
    rmSync(this.folder, { recursive: true, force: true });
  }

  #serve(): FakeChannel {
    const child = spawn(process.execPath, [program, "serve", "--root", join(this.folder, "root")], {
      cwd: this.home,
      env: {
        PATH: process.env.PATH,
        HOME: this.home,
        SHELL: "/bin/sh",
        XDG_RUNTIME_DIR: join(this.folder, "run"),
        OLLIE_DIR: join(this.folder, "base"),
      },
    });
    const channel = new FakeChannel(child, () => this.#open.delete(channel));
    this.#open.add(channel);
    return channel;
  }

  #daemons(): number[] {
    return this.sessions.flatMap((id) => {
      try {
        const { pid } = JSON.parse(
          readFileSync(join(this.folder, "root/sessions", id, "daemon.json"), "utf8"),
        );
        return [pid as number];
      } catch {
        return [];
      }
    });
  }
}

class FakeChannel implements SshChannel {
  readonly stdout: AsyncIterable<Uint8Array>;
  readonly closed: SshChannel["closed"];
  #stderr = "";
  #drop!: (fault: Fault) => void;

  constructor(
    private readonly child: ChildProcess,
    gone: () => void,
  ) {
    this.stdout = child.stdout as AsyncIterable<Uint8Array>;
    child.stdin!.on("error", () => {});
    child.stderr!.on("data", (bytes) => {
      this.#stderr = (this.#stderr + bytes).slice(-32 * 1024);
    });
    this.closed = new Promise((resolve) => {
      this.#drop = (fault) => resolve({ fault });
      child.on("exit", (code, signal) => resolve({ code: code ?? undefined, signal: signal ?? undefined }));
    });
    child.on("exit", gone);
  }

  stderr(): string {
    return this.#stderr;
  }

  get buffered(): number {
    return this.child.stdin!.writableLength;
  }

  write(bytes: Uint8Array): Promise<void> {
    return new Promise((resolve) => {
      if (this.child.stdin!.write(bytes)) resolve();
      else this.child.stdin!.once("drain", resolve);
    });
  }

  end(): void {
    this.child.stdin!.end();
  }

  close(): void {
    this.child.stdin!.destroy();
    this.child.stdout!.destroy();
  }

  drop(fault: Fault): void {
    this.#drop(fault);
    this.close();
  }

  kill(): void {
    this.child.kill("SIGKILL");
  }
}

function end(pid: number): void {
  try {
    process.kill(pid, "SIGKILL");
  } catch {
    // Has ended.
  }
}
