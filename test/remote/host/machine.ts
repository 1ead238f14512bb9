/** A host without SSH, seen from the protocol: bridges of this checkout with a home of their own. */
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { opHash } from "../../../src/remote/protocol/hash.ts";
import { hostHello } from "../../../src/remote/protocol/hello.ts";
import { type Handler, Peer } from "../../../src/remote/protocol/peer.ts";

const program = join(import.meta.dir, "../../../src/ollie-remote.ts");

export const settings = { env: {}, sandboxes: {}, approved: [], toolsHash: "" };

export class Machine {
  readonly folder = mkdtempSync(join(tmpdir(), "ollie-machine-"));
  readonly home = join(this.folder, "home");
  readonly project = join(this.folder, "project");
  readonly #bridges: BridgeProcess[] = [];

  constructor() {
    mkdirSync(this.home);
    mkdirSync(this.project);
    mkdirSync(join(this.folder, "run"), { mode: 0o700 });
  }

  get environment(): Record<string, string> {
    return {
      PATH: process.env.PATH!,
      HOME: this.home,
      XDG_RUNTIME_DIR: join(this.folder, "run"),
      // The shell of a test's user may have files that take long.
      SHELL: "/bin/sh",
    };
  }

  bridge(...flags: string[]): BridgeProcess {
    const bridge = new BridgeProcess(this, flags);
    this.#bridges.push(bridge);
    return bridge;
  }

  sessions(): string {
    return join(this.home, ".local/state/ollie/remote/sessions");
  }

  /** What runs on it: bridges, daemons and what they have started. */
  pids(): number[] {
    return readdirSync("/proc")
      .filter((name) => /^\d+$/.test(name))
      .map(Number)
      .filter((pid) => textOf(`/proc/${pid}/environ`).includes(`HOME=${this.home}\0`));
  }

  daemonOf(sessionId: string): number {
    return JSON.parse(readFileSync(join(this.sessions(), sessionId, "daemon.json"), "utf8")).pid;
  }

  async close(): Promise<void> {
    for (;;) {
      const left = this.pids();
      if (left.length === 0) break;
      for (const pid of left) kill(pid);
      await Bun.sleep(20);
    }
    rmSync(this.folder, { recursive: true, force: true });
  }
}

export function kill(pid: number): void {
  try {
    process.kill(pid, "SIGKILL");
  } catch {}
}

function textOf(file: string): string {
  try {
    return readFileSync(file, "utf8");
  } catch {
    return "";
  }
}

/** One bridge and the client's end of it. */
export class BridgeProcess {
  readonly child: Bun.Subprocess<"pipe", "pipe", "pipe">;
  readonly peer: Peer;
  readonly said: string[] = [];
  readonly notified: { method: string; params: unknown }[] = [];
  readonly hello = Promise.withResolvers<import("zod").infer<typeof hostHello>>();

  constructor(machine: Machine, flags: string[]) {
    this.child = Bun.spawn([process.execPath, program, "serve", ...flags], {
      env: machine.environment,
      stdin: "pipe",
      stdout: "pipe",
      stderr: "pipe",
    });
    const note =
      (method: string): Handler =>
      (params) =>
        void this.notified.push({ method, params });
    this.peer = new Peer({
      sink: {
        write: async (bytes) => {
          this.child.stdin.write(bytes);
          await this.child.stdin.flush();
        },
      },
      handlers: {
        hello: (params) => this.hello.resolve(hostHello.parse(params)),
        output: note("output"),
        exit: note("exit"),
        superseded: note("superseded"),
      },
    });
    void this.peer.readAll(this.child.stdout);
  }

  async greet(client = "test"): Promise<this> {
    await this.hello.promise;
    await this.peer.request("hello", { proto: 1, client, need: ["session", "op"] });
    return this;
  }

  create(project: string, more: object = {}): Promise<Attached> {
    return this.peer.request("session.create", {
      sessionId: crypto.randomUUID(),
      workspace: { kind: "inplace", path: project },
      settings,
      policy: {},
      envRefs: {},
      key: Buffer.alloc(32, 7).toString("base64"),
      ...more,
    });
  }

  attach({ sessionId, policyHash, envRefHash, epoch }: Attached, more: object = {}): Promise<Attached> {
    return this.peer.request("session.attach", {
      sessionId,
      policyHash,
      envRefHash,
      epoch,
      settings,
      ...more,
    });
  }

  /** Starts a program; resolves when it is accepted. */
  start(args: string[], opId: string = crypto.randomUUID()): Promise<{ opId: string; status: string }> {
    const [name, ...rest] = args;
    const request = { steps: [{ program: name!, args: rest, env: {} }], sandbox: "", detach: false };
    return this.peer.request("op.start", { opId, hash: opHash(request), ...request });
  }

  /** The report of an operation that has ended. */
  async end(opId: string): Promise<Report> {
    for (;;) {
      const report = await this.peer.request<Report>("op.wait", { opId, limit: 5 });
      if (report.ended !== undefined) return report;
    }
  }

  /** Nothing more is said; resolves with the bridge's exit status. */
  async close(): Promise<number> {
    await this.peer.flush();
    await this.child.stdin.end();
    return this.child.exited;
  }
}

export interface Attached {
  sessionId: string;
  policyHash: string;
  envRefHash: string;
  epoch: number;
  cwd: string;
  state: string;
  ops: Report[];
}

export interface Report {
  opId: string;
  status: string;
  ended?: number;
  code?: number;
  output?: string;
}
