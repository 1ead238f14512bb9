/** A link to a made-up host with the machine that drives it, as a server has them. */
import { createActor, fromPromise } from "xstate";
import { type RemoteWork, remoteLine, remoteMachine } from "../../../actors/remote.ts";
import { Secrets } from "../../../src/config/secrets.ts";
import { RemoteHands } from "../../../src/remote/client/hands.ts";
import { RemoteLink } from "../../../src/remote/client/link.ts";
import type { Locator } from "../../../src/remote/client/locator.ts";
import { LinkJobs } from "../../../src/remote/client/remote-jobs.ts";
import type { LocalTools } from "../../../src/remote/client/tools/local.ts";
import { loadRemotes } from "../../../src/remote/policy/remotes.ts";
import type { CallContext, CallOutcome } from "../../../src/tools/tool.ts";
import type { FakeHost } from "./host.ts";

export class TestSession {
  readonly notes: string[] = [];
  /** What calls have told of the way to the host. */
  readonly ways: string[] = [];
  printed = "";
  readonly link: RemoteLink;
  readonly hands: RemoteHands;
  readonly jobs: LinkJobs;
  readonly actor;

  constructor(
    readonly host: FakeHost,
    readonly tools: LocalTools,
    public locator?: Locator,
  ) {
    this.link = new RemoteLink(
      {
        target: "alice@h1",
        profile: loadRemotes("/nonexistent").profileFor("alice@h1"),
        client: "test",
        connections: host.connections,
        boot: host.boot,
        locator,
        workspace: { kind: "inplace", path: host.project },
        settings: () => ({ env: {}, sandboxes: {}, approved: [] }),
        tools,
      },
      {
        progress: (progress) => this.actor.send({ type: "PROGRESS", progress }),
        lost: (fault) => this.actor.send({ type: "LOST", fault }),
        keep: (kept) => {
          this.locator = kept;
        },
        note: (text) => this.notes.push(text),
        toolsChanged: () => {},
        toolsOutdated: () => this.actor.send({ type: "SYNC" }),
        asks: () => {},
      },
    );
    const link = this.link;
    const work: RemoteWork = {
      target: link.target,
      now: Date.now,
      random: Math.random,
      stands: (how, fault) => link.stands(how, fault),
    };
    const step = (name: "connect" | "bootstrap" | "attach" | "sync") =>
      fromPromise<void, object>(({ signal }) => link[name](signal)) as never;
    this.actor = createActor(
      remoteMachine.provide({
        actors: {
          connect: step("connect"),
          bootstrap: step("bootstrap"),
          attach: step("attach"),
          sync: step("sync"),
        },
      }),
      { input: { work } },
    ).start();
    this.hands = new RemoteHands(link);
    this.jobs = new LinkJobs(link);
  }

  get line(): string {
    return remoteLine(this.actor.getSnapshot());
  }

  /** @throws what the way has failed with */
  async ready(): Promise<void> {
    this.actor.send({ type: "CONNECT" });
    await this.hands.ready(AbortSignal.timeout(30_000), { lost: () => {}, back: () => {} });
  }

  /** Calls a tool of the host. */
  call(
    name: string,
    args: Record<string, unknown>,
    more: { opId?: string; again?: boolean; signal?: AbortSignal; ctx?: Partial<CallContext> } = {},
  ): Promise<CallOutcome> {
    const tool = this.hands.registry.get(name);
    if (!tool) throw new Error(`the host has no tool ${name}`);
    const { opId = Bun.randomUUIDv7(), again, signal = AbortSignal.timeout(60_000) } = more;
    const ctx = { ...this.#context(), ...more.ctx };
    return this.hands.call({ ok: true, tool, args }, ctx, { callId: "1", opId, again }, signal, {
      output: (text) => {
        this.printed += text;
      },
      lost: (host) => this.ways.push(`lost ${host}`),
      back: () => this.ways.push("back"),
    });
  }

  close(): void {
    this.actor.send({ type: "CLOSE" });
  }

  #context(): CallContext {
    return {
      session: "s",
      agent: "main",
      cwd: this.host.project,
      env: {},
      secrets: new Secrets(),
      tmp: this.host.folder,
      address: () => ({ addr: "" }),
      toolsPath: "",
      memoryPath: "",
      skillsPath: "",
      cage: async () => undefined,
      serviceCage: async () => undefined,
    };
  }
}
