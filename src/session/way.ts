/** The way to another host that one session has: the machine of `actors/remote.ts`, the link that it drives, and what the session sees of both. */

import { createActor, fromPromise } from "xstate";
import { z } from "zod";
import { type RemoteProgress, type RemoteRef, remoteLine, remoteMachine } from "../../actors/remote.ts";
import { CodedFault, toFault } from "../fault.ts";
import { RemoteHands } from "../remote/client/hands.ts";
import { type LinkOptions, RemoteLink } from "../remote/client/link.ts";
import { LinkJobs } from "../remote/client/remote-jobs.ts";
import { sessionDestroyed } from "../remote/protocol/exports.ts";
import { printable, quoted } from "../sandbox/project.ts";
import type { Hands, Link } from "../tools/hands.ts";
import type { RemoteOwner, SessionRemote } from "./remote.ts";

export interface WayOptions extends LinkOptions {
  /** Milliseconds that a lost host is waited for before that is told. */
  grace: number;
}

export class Way implements SessionRemote {
  readonly hands: Hands;
  readonly jobs: LinkJobs;
  readonly grace: number;
  readonly #link: RemoteLink;
  readonly #actor: RemoteRef;
  /** An upload is under way and chat says so. */
  #bringing = false;

  constructor(
    private readonly owner: RemoteOwner,
    options: WayOptions,
  ) {
    const { grace, profile } = options;
    this.grace = grace;
    this.#link = new RemoteLink(options, {
      progress: (progress) => this.#progress(progress),
      lost: (fault) => this.#actor.send({ type: "LOST", fault }),
      keep: (locator) => owner.keep(locator),
      note: (text) => owner.say(text),
      toolsChanged() {},
      toolsOutdated: () => this.#actor.send({ type: "SYNC" }),
      asks: ({ file, sha256, asks }) =>
        owner.say(
          `${printable(file)} on ${owner.target} asks for ${printable(asks.join(", "))}, which does not count: the user has not approved it ` +
            `(olliesrv sandbox approve --remote ${owner.target} --sha256 ${sha256} ${quoted(file)})`,
        ),
    });
    const link = this.#link;
    this.jobs = new LinkJobs(link);
    this.#actor = createActor(machineFor(link), {
      id: "remote",
      inspect: (event) => owner.inspect(event),
      input: {
        work: {
          target: options.target,
          now: Date.now,
          random: Math.random,
          stands: (how, fault) => this.#stands(how, fault && toFault(fault)),
        },
      },
    });
    this.#actor.start();
    const report = profile.onLoss === "report" ? grace : undefined;
    this.hands = this.#withConnect(new RemoteHands(link, { report }));
  }

  get line(): string {
    return remoteLine(this.#actor.getSnapshot());
  }

  get ready(): boolean {
    return this.#actor.getSnapshot().matches("ready");
  }

  snapshot(): unknown {
    const { status, value, context } = this.#actor.getSnapshot();
    const { tries, next, progress, fault } = context;
    return { status, value, context: { tries, next, progress, fault: fault?.message } };
  }

  watch(listener: () => void): () => void {
    let line = this.line;
    const { unsubscribe } = this.#actor.subscribe(() => {
      if (this.line === line) return;
      line = this.line;
      listener();
    });
    return unsubscribe;
  }

  reconnect(): void {
    this.#actor.send({ type: "RECONNECT" });
  }

  async sync(): Promise<void> {
    this.#connect();
    await this.#link.sync(AbortSignal.timeout(syncLimit));
  }

  async close(): Promise<void> {
    this.#actor.send({ type: "CLOSE" });
  }

  async destroy(signal: AbortSignal): Promise<void> {
    const sessionId = this.#link.locator?.sessionId;
    if (sessionId === undefined) return;
    this.#connect();
    const request = { sessionId, confirm: sessionId };
    try {
      // Attached, the way would end with the session before it can say so.
      await this.#link.ask("session.detach", {}, z.unknown(), signal);
      await this.#link.ask("session.destroy", request, sessionDestroyed, signal);
    } catch (error) {
      if (!(error instanceof CodedFault && error.code === "session.absent")) throw error;
    }
  }

  /** Where it is not on its way yet, or has given up. */
  #connect(): void {
    const snapshot = this.#actor.getSnapshot();
    if (snapshot.matches("idle") || snapshot.matches("failed")) this.#actor.send({ type: "CONNECT" });
  }

  /** Whoever needs the host has it reached; a first connection is none that was lost. */
  #withConnect(hands: RemoteHands): Hands {
    const connect = () => this.#connect();
    const { host, registry } = hands;
    return {
      host,
      registry,
      sudo: (opId) => hands.sudo(opId),
      call: (...args) => {
        connect();
        return hands.call(...args);
      },
      survey: (cwd, signal) => {
        connect();
        return hands.survey(cwd, signal);
      },
      ready: async (signal, link) => {
        connect();
        const stop = this.#tellLost(host, link);
        try {
          await hands.ready(signal, { lost() {}, back() {} });
        } finally {
          stop();
        }
      },
    };
  }

  /** Until stopped: an attempt that failed, or a link that broke, is told. */
  #tellLost(host: string, { lost, back }: Link): () => void {
    let told = false;
    const look = () => {
      const away = this.#actor.getSnapshot().matches("reconnecting");
      if (away && !told) lost(host);
      told ||= away;
    };
    look();
    const { unsubscribe } = this.#actor.subscribe(look);
    return () => {
      unsubscribe();
      if (told) back();
    };
  }

  #stands(how: "ready" | "away" | "failed" | "closed", fault?: ReturnType<typeof toFault>): void {
    this.#link.stands(how, fault);
    if (how !== "ready") return;
    if (this.#bringing) this.owner.say(`ollie-remote is on ${this.owner.target} now.`);
    this.#bringing = false;
  }

  /** The line of `remote` shows each; chat has the beginning and the end. */
  #progress(progress: RemoteProgress): void {
    this.#actor.send({ type: "PROGRESS", progress });
    const { total } = progress;
    if (this.#bringing || total === undefined || !this.#actor.getSnapshot().matches("bootstrapping")) return;
    this.#bringing = true;
    this.owner.say(
      `Bringing ollie-remote to ${this.owner.target}: ${(total / 1e6).toFixed(1)} MB, once; the file remote says how far it is.`,
    );
  }
}

/** Milliseconds for tools to be brought to a host. */
const syncLimit = 300_000;

function machineFor(link: RemoteLink) {
  const step = (name: "connect" | "bootstrap" | "attach" | "sync") =>
    fromPromise<void, object>(({ signal }) => link[name](signal)) as never;
  const [connect, bootstrap, attach, sync] = [
    step("connect"),
    step("bootstrap"),
    step("attach"),
    step("sync"),
  ];
  return remoteMachine.provide({ actors: { connect, bootstrap, attach, sync } });
}
