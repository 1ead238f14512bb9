/** `ollie-remote serve` as a client at the other end of its pipes sees it. */
import { mkdirSync, mkdtempSync, readFileSync, realpathSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { statOf } from "../../../../src/exec/proc.ts";
import { readDaemonFile } from "../../../../src/remote/host/daemon-file.ts";
import { sessionIds } from "../../../../src/remote/host/session-record.ts";
import { opHash } from "../../../../src/remote/protocol/hash.ts";
import type { Attached, OpOutput, OpReport, OpStart } from "../../../../src/remote/protocol/messages.ts";

const program = join(import.meta.dir, "../../../../src/ollie-remote.ts");

export const settings = { env: {}, sandboxes: {}, approved: [], toolsHash: "" };

export interface Message {
  id?: unknown;
  method?: string;
  params?: Record<string, unknown>;
  result?: unknown;
  error?: { code: number; message: string; data?: { code: string; infra: boolean } };
}

/** A host: its home, a project, and the sessions on it. */
export class Host {
  readonly home = realpathSync(mkdtempSync(join(tmpdir(), "ollie-host-")));
  readonly project = join(this.home, "project");
  readonly runtime = join(this.home, "run");
  readonly root = join(this.home, "root");
  readonly #connections: Connection[] = [];

  constructor() {
    mkdirSync(this.project);
    mkdirSync(this.runtime, { mode: 0o700 });
  }

  serve(): Connection {
    const connection = new Connection(this);
    this.#connections.push(connection);
    return connection;
  }

  daemon(sessionId: string): number {
    return readDaemonFile(join(this.root, "sessions", sessionId))!.pid;
  }

  async remove(): Promise<void> {
    for (const connection of this.#connections) connection.kill("SIGKILL");
    for (const id of sessionIds(this.root)) {
      const pid = readDaemonFile(join(this.root, "sessions", id))?.pid;
      if (pid !== undefined && lives(pid)) process.kill(pid, "SIGTERM");
      while (pid !== undefined && lives(pid)) await Bun.sleep(10);
    }
    rmSync(this.home, { recursive: true, force: true });
  }
}

export function lives(pid: number): boolean {
  const stat = statOf(pid);
  return stat !== undefined && !stat.dead;
}

export class Connection {
  readonly messages: Message[] = [];
  readonly #child;
  readonly #waiting = new Set<() => void>();
  #next = 1;
  ended = false;

  constructor(readonly host: Host) {
    const { home, runtime, root } = host;
    this.#child = Bun.spawn([process.execPath, program, "serve", "--root", root], {
      cwd: "/",
      env: { PATH: process.env.PATH!, HOME: home, XDG_RUNTIME_DIR: runtime },
      stdin: "pipe",
      stdout: "pipe",
      stderr: "ignore",
    });
    void this.#read();
  }

  get pid(): number {
    return this.#child.pid;
  }

  get exited(): Promise<number> {
    return this.#child.exited;
  }

  kill(signal: NodeJS.Signals): void {
    this.#child.kill(signal);
  }

  /** Ends what is said to it. */
  end(): void {
    void this.#child.stdin.end();
  }

  raw(text: string | Uint8Array): void {
    this.#child.stdin.write(text);
    void this.#child.stdin.flush();
  }

  /** The number under which the answer comes. */
  send(method: string, params: unknown = {}): number {
    const id = this.#next++;
    this.raw(`${JSON.stringify({ jsonrpc: "2.0", id, method, params })}\n`);
    return id;
  }

  notify(method: string, params: unknown): void {
    this.raw(`${JSON.stringify({ jsonrpc: "2.0", method, params })}\n`);
  }

  /** Resolves with the first message that fits; rejects when none can come any more. */
  async message(fits: (message: Message) => boolean): Promise<Message> {
    for (;;) {
      const found = this.messages.find(fits);
      if (found) return found;
      if (this.ended) throw new Error("the connection has ended");
      await new Promise<void>((resolve) => this.#waiting.add(resolve));
    }
  }

  /** The result, or the error's own code. */
  async ask(method: string, params: unknown = {}): Promise<unknown> {
    const id = this.send(method, params);
    const { result, error } = await this.message(
      (message) => message.id === id && message.method === undefined,
    );
    return error ? (error.data?.code ?? error.message) : result;
  }

  async hello(client = "me"): Promise<void> {
    this.send("hello", { proto: 1, client, need: ["session", "op"] });
    await this.message(({ method }) => method === "hello");
  }

  async create(sessionId: string = Bun.randomUUIDv7()): Promise<Attached> {
    await this.hello();
    const workspace = { kind: "inplace", path: this.host.project };
    const key = Buffer.alloc(32, 7).toString("base64");
    return (await this.ask("session.create", {
      sessionId,
      workspace,
      settings,
      policy: {},
      envRefs: {},
      key,
    })) as Attached;
  }

  async attach(session: Attached, more: object = {}, client = "me"): Promise<Attached | string> {
    await this.hello(client);
    const { sessionId, policyHash, envRefHash, epoch } = session;
    return (await this.ask("session.attach", {
      sessionId,
      policyHash,
      envRefHash,
      epoch,
      settings,
      ...more,
    })) as Attached;
  }

  async over(opId: string): Promise<OpReport> {
    for (;;) {
      const report = (await this.ask("op.wait", { opId, limit: 5 })) as OpReport;
      if (report.ended !== undefined) return report;
    }
  }

  outputs(opId: string): OpOutput[] {
    return this.messages
      .filter(({ method, params }) => method === "output" && params?.opId === opId)
      .map(({ params }) => params as unknown as OpOutput);
  }

  async #read(): Promise<void> {
    let rest = "";
    const decoder = new TextDecoder();
    for await (const bytes of this.#child.stdout) {
      const lines = (rest + decoder.decode(bytes, { stream: true })).split("\n");
      rest = lines.pop()!;
      for (const line of lines) this.messages.push(JSON.parse(line) as Message);
      this.#wake();
    }
    this.ended = true;
    this.#wake();
  }

  #wake(): void {
    for (const resolve of this.#waiting) resolve();
    this.#waiting.clear();
  }
}

export function op(code: string, more: Partial<OpStart> = {}): OpStart {
  const request = { steps: [{ code, lang: "sh" as const }], sandbox: "", detach: false, ...more };
  return { opId: Bun.randomUUIDv7(), hash: opHash(request), ...request };
}

export function lines(file: string): string[] {
  try {
    return readFileSync(file, "utf8").split("\n").filter(Boolean);
  } catch {
    return [];
  }
}
