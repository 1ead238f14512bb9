/**
 * The way to one session on another host, step by step as the machine of `actors/remote.ts` wants it, and the session itself while it stands.
 */
import { randomBytes } from "node:crypto";
import type { z } from "zod";
import { CodedFault, Fault } from "../../fault.ts";
import type { Askpass } from "../../ssh/transport.ts";
import { boot as bootRemote } from "../bootstrap/boot.ts";
import type { Boot, Booted, Progress } from "../bootstrap/bootstrap.ts";
import type { Profile } from "../policy/remotes.ts";
import { hashOf } from "../protocol/hash.ts";
import type { HostHello } from "../protocol/hello.ts";
import type { Peer } from "../protocol/peer.ts";
import {
  type Attached,
  attached,
  type SessionSettings,
  type sessionAttach,
  type sessionCreate,
  type workspace,
} from "../protocol/session.ts";
import { toolsList } from "../protocol/tools.ts";
import { Bridge } from "./bridge.ts";
import type { Connections, Lease } from "./connections.ts";
import type { Locator } from "./locator.ts";
import { Operations } from "./operations.ts";
import { Gate, type Line } from "./standing.ts";
import type { LocalTools } from "./tools/local.ts";
import { syncTools } from "./tools/sync.ts";

export type RemoteTools = z.infer<typeof toolsList>;
export type Asks = NonNullable<Attached["asks"]>;

export interface LinkOptions {
  /** As `remote=` has it. */
  target: string;
  profile: Profile;
  /** Which server this is: the same for as long as its state folder is. */
  client: string;
  connections: Connections;
  askpass?: Askpass;
  /** Of a session that is there already; undefined: one is made. */
  locator?: Locator;
  /** Where it works, if it is made. */
  workspace: z.infer<typeof workspace>;
  /** What it works with, asked for at each attachment. */
  settings(): Omit<SessionSettings, "toolsHash">;
  tools: LocalTools;
  boot?: Boot;
  /** Folder of the programs for hosts; unset = beside this one. */
  programs?: string;
}

/** What whoever holds a link is told. */
export interface LinkEvents {
  progress(progress: Progress): void;
  /** It was there and is not any more: for the machine. */
  lost(fault: Fault): void;
  /** To be on disk when it resolves: without it the session would not be found again. */
  keep(locator: Locator): void | Promise<void>;
  /** For the user, once. */
  note(text: string): void;
  /** The tools there are others now. */
  toolsChanged(tools: RemoteTools): void;
  /** The tool folders here are others now: the machine is to be told SYNC. */
  toolsOutdated(): void;
  /** What a project file there asks for and nobody has approved. */
  asks(asks: Asks): void;
}

export class RemoteLink implements Line<Peer> {
  readonly gate = new Gate<Peer>();
  readonly operations = new Operations(this);
  readonly target: string;
  readonly limit: number;
  #lease?: Lease;
  #booted?: Booted;
  #bridge?: Bridge;
  #hello?: HostHello;
  /** Hash of the settings that the session there has. */
  #told?: string;
  /** Milliseconds by which the clock there is ahead. */
  #skew = 0;
  #locator?: Locator;
  /** Of a session that has to be made. Asked for again, after an answer that was lost, it is the same one. */
  readonly #made = { sessionId: Bun.randomUUIDv7() as string, key: randomBytes(32).toString("base64") };
  #tools?: RemoteTools;
  #toolsHash = "";
  #unwatch?: () => void;

  constructor(
    private readonly options: LinkOptions,
    private readonly events: LinkEvents,
  ) {
    this.target = options.target;
    this.limit = options.profile.timeouts.rpc;
    this.#locator = options.locator;
  }

  /** What the host has said of itself when it was last reached. */
  get hello(): HostHello | undefined {
    return this.#hello;
  }

  get locator(): Locator | undefined {
    return this.#locator;
  }

  /** Empty until the host has been reached once. */
  get tools(): RemoteTools {
    return this.#tools ?? { tools: [], problems: [] };
  }

  /** Milliseconds since 1970 by the clock of the host. */
  hostTime(): number {
    return Date.now() + this.#skew;
  }

  // The steps of the machine. Each leaves what was there before.

  async connect(signal: AbortSignal): Promise<void> {
    this.#leave();
    const { connections, profile, askpass } = this.options;
    this.#lease = await connections.lease(profile.ssh, askpass, signal);
    const { hostKey } = this.#lease.connection;
    const before = this.#locator?.hostKey;
    if (before && hostKey && before !== hostKey)
      this.events.note(
        `${this.target} has another key than when the session was made (${hostKey}, it was ${before}); known_hosts has it`,
      );
  }

  async bootstrap(signal: AbortSignal): Promise<void> {
    const { profile, boot = bootRemote, programs } = this.options;
    const onProgress = (progress: Progress) => this.events.progress(progress);
    const { upload } = profile.timeouts;
    const limit = upload ? AbortSignal.timeout(upload) : undefined;
    try {
      this.#booted = await boot(this.#lease!.connection, {
        ...profile.boot,
        ...(programs && { programs }),
        onProgress,
        signal: limit ? AbortSignal.any([signal, limit]) : signal,
      });
    } catch (error) {
      if (!limit?.aborted || signal.aborted) throw error;
      throw new CodedFault(
        "timeout",
        "boot.stalled",
        `ollie-remote was not on ${this.target} within ${upload! / 1000} s, which is what timeouts.upload_secs allows`,
        { retry: true },
      );
    }
    for (const note of this.#booted.notes) this.events.note(note);
  }

  async attach(signal: AbortSignal): Promise<void> {
    const bridge: Bridge = new Bridge(this.#booted!, {
      handlers: this.operations.handlers(() => bridge.peer),
      maxFrame: this.options.profile.limits.maxFrame,
      limit: this.limit,
      onLost: (fault) => this.#lost(bridge, fault),
    });
    this.#bridge = bridge;
    this.#booted = undefined;
    const hello = await bridge.greet(this.options.client, signal);
    this.#hello = hello;
    this.#skew = hello.clock - Date.now();
    this.#toolsHash = await this.#bringTools(bridge.peer, hello.tools, signal);
    const settings = this.#settings();
    this.#told = hashOf(settings);
    const answer = this.#locator
      ? await this.#attachTo(this.#locator, bridge, settings, signal)
      : await this.#create(bridge, settings, signal);
    if (answer.asks) this.events.asks(answer.asks);
    this.operations.reconcile(answer.ops);
    this.#learnTools(
      await bridge.peer.request("tools.list", {}, { schema: toolsList, limit: this.limit, signal }),
    );
    this.#unwatch ??= this.options.tools.watch(() => this.events.toolsOutdated());
  }

  /** The tools of here as they are now; also what else the session works with. */
  async sync(signal: AbortSignal): Promise<void> {
    const peer = await this.gate.wait(signal);
    this.#toolsHash = await this.#bringTools(peer, [], signal);
    await this.configure(signal);
  }

  /** Tells the session what it works with from now on. */
  async configure(signal: AbortSignal): Promise<void> {
    const settings = this.#settings();
    this.#learnTools(await this.ask("session.configure", settings, toolsList, signal));
    this.#told = hashOf(settings);
  }

  /**
   * What is started next has what the session is set to now, such as a variable that has changed: it is told before, and not waited for, since
   * the host goes by the order of what it is told.
   */
  tellChanges(peer: Peer): void {
    const settings = this.#settings();
    const told = hashOf(settings);
    if (told === this.#told) return;
    this.#told = told;
    peer
      .request("session.configure", settings, { schema: toolsList, limit: this.limit })
      .then((tools) => this.#learnTools(tools))
      .catch(() => {
        // Where the connection is lost, the next attachment tells it.
        if (this.#told === told) this.#told = undefined;
      });
  }

  #settings(): SessionSettings {
    return { ...this.options.settings(), toolsHash: this.#toolsHash };
  }

  /** What the machine says of it. */
  stands(how: "ready" | "away" | "failed" | "closed", fault?: Fault): void {
    if (how === "ready") this.gate.open(this.#bridge!.peer);
    else if (how === "away") this.gate.shut();
    else {
      const closed = new Fault("interrupted", `the session on ${this.target} is closed`);
      this.gate.fail(how, fault ?? closed);
      this.#leave();
      if (how === "closed") this.#unwatch?.();
    }
  }

  distrust(peer: Peer, why: Fault): void {
    if (this.#bridge?.peer === peer) this.#bridge.lose(why);
  }

  /**
   * A request of the session, as soon as the host is there. It is sent again where the connection was lost before the answer came, so it must be
   * one that may come twice.
   */
  async ask<T>(method: string, params: unknown, schema: z.ZodType<T>, signal: AbortSignal): Promise<T> {
    let peer: Peer | undefined;
    for (;;) {
      peer = await this.gate.wait(signal, {}, peer);
      try {
        return await peer.request(method, params, { schema, limit: this.limit, signal });
      } catch (error) {
        if (signal.aborted) throw error;
        if (error instanceof CodedFault && error.code.startsWith("proto.")) this.distrust(peer, error);
        else if (!peer.closed) throw error;
      }
    }
  }

  async #create(bridge: Bridge, settings: SessionSettings, signal: AbortSignal): Promise<Attached> {
    const { profile, target, workspace } = this.options;
    const { sessionId, key } = this.#made;
    const request: z.input<typeof sessionCreate> = {
      sessionId,
      workspace,
      settings,
      policy: profile.policy,
      envRefs: profile.envRefs,
      key,
    };
    const answer = await bridge.peer.request("session.create", request, {
      schema: attached,
      limit: this.limit,
      signal,
    });
    await this.#keep({
      target,
      hostKey: this.#lease!.connection.hostKey,
      sessionId,
      key,
      ...located(answer),
    });
    return answer;
  }

  async #attachTo(
    old: Locator,
    bridge: Bridge,
    settings: SessionSettings,
    signal: AbortSignal,
  ): Promise<Attached> {
    const { sessionId, policyHash, envRefHash, epoch } = old;
    const request: z.input<typeof sessionAttach> = { sessionId, policyHash, envRefHash, epoch, settings };
    const answer = await bridge.peer.request("session.attach", request, {
      schema: attached,
      limit: this.limit,
      signal,
    });
    await this.#keep({ ...old, ...located(answer) });
    return answer;
  }

  async #keep(locator: Locator): Promise<void> {
    await this.events.keep(locator);
    this.#locator = locator;
  }

  /** @param there hashes of those that need not be brought */
  async #bringTools(peer: Peer, there: readonly string[], signal: AbortSignal): Promise<string> {
    const manifest = await this.options.tools.manifest();
    for (const problem of manifest.problems) this.events.note(problem);
    if (there.includes(manifest.hash)) return manifest.hash;
    const onProgress = (progress: Progress) => this.events.progress(progress);
    await syncTools(peer, manifest, { onProgress, signal, limit: this.limit });
    return manifest.hash;
  }

  #learnTools(tools: RemoteTools): void {
    this.#tools = tools;
    this.events.toolsChanged(tools);
  }

  #lost(bridge: Bridge, fault: Fault): void {
    if (this.#bridge !== bridge) return;
    this.gate.shut();
    this.events.lost(fault);
  }

  #leave(): void {
    const [bridge, booted] = [this.#bridge, this.#booted];
    this.#bridge = undefined;
    this.#booted = undefined;
    bridge?.close();
    booted?.channel.close();
    this.#lease?.release();
    this.#lease = undefined;
  }
}

function located({ epoch, policyHash, envRefHash, digest, cwd }: Attached) {
  return { epoch, policyHash, envRefHash, digest, cwd };
}
