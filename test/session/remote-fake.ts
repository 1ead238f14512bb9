/** Another host that exists in the test alone: its tools are functions, and its link comes and goes as the test says. */
import type { RemoteEnding, RemoteJob } from "../../src/remote/client/jobs.ts";
import type { OpReport } from "../../src/remote/protocol/operation.ts";
import type { RemoteHosts, RemoteOwner, SessionRemote } from "../../src/session/remote.ts";
import type { CallListener, Hands, Link } from "../../src/tools/hands.ts";
import type { CallContext, CallOutcome, Prepared, Tool } from "../../src/tools/tool.ts";

export const tool = (name: string, more: Partial<Tool> = {}): Tool => ({
  name,
  description: name,
  documentation: "",
  schema: { type: "object", properties: {}, additionalProperties: true },
  path: `/there/${name}`,
  folder: "/there",
  tier: "hot",
  concurrency: "write",
  readOnly: false,
  elevated: false,
  sudo: false,
  timeout: 60,
  remote: true,
  ...more,
});

export const done = (text: string): CallOutcome => ({ ok: true, how: "done", text });

/** One call, as the host has it. */
export interface Running {
  tool: string;
  opId: string;
  ctx: CallContext;
  listener: CallListener;
  signal: AbortSignal;
  end(outcome: CallOutcome): void;
  break(fault: Error): void;
}

export class FakeJob implements RemoteJob {
  ending: RemoteEnding | undefined;
  report: OpReport;
  readonly signals: number[] = [];
  #text = Buffer.alloc(0);
  readonly #listeners = new Set<() => void>();
  readonly #over = Promise.withResolvers<RemoteEnding>();

  constructor(
    readonly opId: string,
    title: string,
  ) {
    this.report = { opId, hash: "", status: "running", detach: true, title, streams: {} };
  }

  get length(): number {
    return this.#text.length;
  }

  print(text: string): void {
    this.#text = Buffer.concat([this.#text, Buffer.from(text)]);
    this.#tell();
  }

  end(ending: RemoteEnding, outcome?: CallOutcome): void {
    this.ending = ending;
    this.report = { ...this.report, status: "exited", ended: Date.now(), ...(outcome && { outcome }) };
    this.#over.resolve(ending);
    this.#tell();
  }

  forget(fault: Error): void {
    this.#over.reject(fault);
  }

  watch(listener: () => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  ended(): Promise<RemoteEnding> {
    return this.#over.promise;
  }

  async read(offset: number, count: number) {
    const bytes = this.#text.subarray(offset, offset + Math.min(count, 5));
    return { bytes, next: offset + bytes.length };
  }

  async kill(): Promise<void> {
    this.end({ how: "killed", detail: "SIGTERM" });
  }

  async signal(number: number): Promise<void> {
    this.signals.push(number);
  }

  #tell(): void {
    for (const listener of [...this.#listeners]) listener();
  }
}

export class FakeHost implements RemoteHosts {
  tools: Tool[] = [tool("build")];
  readonly calls: Running[] = [];
  readonly jobs = new Map<string, FakeJob>();
  readonly told: string[] = [];
  readonly owners: RemoteOwner[] = [];
  /** Why it can never be reached. */
  fault?: Error;
  grace = 1e9;
  surveys = 0;
  #up = true;
  readonly #listeners = new Set<() => void>();
  readonly #links = new Set<Link>();

  get up(): boolean {
    return this.#up;
  }

  /** The link is there, or not. */
  set up(up: boolean) {
    this.#up = up;
    for (const link of [...this.#links]) up ? link.back() : link.lost("me@h1");
    this.changed();
  }

  changed(): void {
    for (const listener of [...this.#listeners]) listener();
  }

  check(target: string): void {
    if (target.startsWith("-")) throw new Error(`${target} is no host`);
  }

  open(owner: RemoteOwner): SessionRemote {
    this.owners.push(owner);
    const host = this;
    return {
      hands: this.#hands(),
      jobs: { list: () => [...this.jobs.values()], get: (id) => this.jobs.get(id), watch: () => () => {} },
      get line() {
        return `${host.fault ? "failed" : host.up ? "ready" : "reconnecting"} ${owner.target}`;
      },
      get ready() {
        return host.up && !host.fault;
      },
      snapshot: () => ({ value: "ready" }),
      get grace() {
        return host.grace;
      },
      watch: (listener) => {
        this.#listeners.add(listener);
        return () => this.#listeners.delete(listener);
      },
      reconnect: () => void this.told.push("reconnect"),
      sync: async () => void this.told.push("sync"),
      close: async () => void this.told.push("close"),
      destroy: async () => void this.told.push("destroy"),
    };
  }

  #hands(): Hands {
    return {
      host: "me@h1",
      registry: {
        list: () => this.tools,
        get: (name) => this.tools.find((one) => one.name === name),
        problems: () => [],
        spec: ({ name, description, schema }) => ({ name, description, schema }),
        close() {},
      },
      ready: (signal, link) => this.#ready(signal, link),
      call: (prepared, ctx, { opId }, signal, listener) => this.#call(prepared, ctx, opId, signal, listener),
      survey: async (cwd) => {
        this.surveys++;
        return {
          platform: "plan9 pdp11",
          git: "no git",
          files: [{ path: `${cwd}/AGENTS.md`, text: "Rules." }],
        };
      },
    };
  }

  async #ready(signal: AbortSignal, link: Link): Promise<void> {
    if (this.fault) throw this.fault;
    if (this.up) return;
    link.lost("me@h1");
    await new Promise<void>((resolve, reject) => {
      const stop = this.#listeners.add.bind(this.#listeners);
      const look = () => {
        if (this.fault) reject(this.fault);
        else if (this.up) {
          link.back();
          resolve();
        } else return;
        this.#listeners.delete(look);
      };
      stop(look);
      signal.addEventListener("abort", () => reject(signal.reason), { once: true });
    });
  }

  #call(
    prepared: Prepared,
    ctx: CallContext,
    opId: string,
    signal: AbortSignal,
    listener: CallListener,
  ): Promise<CallOutcome> {
    const { promise, resolve, reject } = Promise.withResolvers<CallOutcome>();
    const name = prepared.ok ? prepared.tool.name : "";
    this.#links.add(listener);
    const over =
      <T>(settle: (value: T) => void) =>
      (value: T) => {
        this.#links.delete(listener);
        settle(value);
      };
    this.calls.push({ tool: name, opId, ctx, listener, signal, end: over(resolve), break: over(reject) });
    return promise;
  }
}
