/**
 * The daemon of one session: runs its operations, keeps its journal, serves its files. It outlives every connection; what it must not lose it
 * writes down before it says so.
 */
import { createHash, randomBytes, timingSafeEqual } from "node:crypto";
import { unlinkSync } from "node:fs";
import { join, relative } from "node:path";
import { z } from "zod";
import { seal as sealMemory } from "../../exec/seal.ts";
import { openPolicy } from "../policy/session-policy.ts";
import { coded } from "../protocol/errors.ts";
import { maxFrame, protocol } from "../protocol/limits.ts";
import type { OpOutput } from "../protocol/operation.ts";
import { type Handler, Peer } from "../protocol/peer.ts";
import { type SessionSettings, sessionSettings } from "../protocol/session.ts";
import { rememberSandbox } from "./confinement-file.ts";
import { removeDaemonFile, writeDaemonFile } from "./daemon-file.ts";
import { bootId } from "./facts.ts";
import { Workspace } from "./files/workspace.ts";
import { rest } from "./garbage.ts";
import { sweep } from "./lifecycle/sweep.ts";
import { loginPath } from "./login-path.ts";
import { createOperations } from "./operations.ts";
import type { Operations } from "./ops/engine.ts";
import { outputLine } from "./output-line.ts";
import { runtimeFolder } from "./own-folder.ts";
import { ownDigest, type Places, sessionFolder } from "./places.ts";
import { sessionMethods } from "./session-methods.ts";
import { readSession, type SessionRecord, writeSession } from "./session-record.ts";
import { SocketLink } from "./socket-link.ts";

/** What a bridge says first. */
export const daemonAttach = z.object({
  token: z.string(),
  client: z.string(),
  epoch: z.int(),
  settings: sessionSettings.optional(),
  takeover: z.boolean().default(false),
});

/** A daemon runs for the session already. */
export class DaemonRuns extends Error {}

/** The connection that counts, and who is behind it. */
interface Attachment {
  peer: Peer;
  link: SocketLink;
  client: string;
}

/** Characters of output that are worth a write of their own. */
const muchOutput = 8 * 1024;
/** Milliseconds without a request after which this process is made small. */
const pause = 500;
/** Milliseconds between looks at whether the session's time is over. */
const interval = 60_000;

export class Daemon {
  #record: SessionRecord;
  #attachment?: Attachment;
  #operations!: Operations;
  #workspace!: Workspace;
  #listener?: { stop(closeActive?: boolean): void };
  #lock?: { stop(closeActive?: boolean): void };
  readonly #token = randomBytes(32).toString("hex");
  readonly #ended = Promise.withResolvers<void>();
  readonly #pause = setTimeout(rest, pause).unref();
  readonly folder: string;

  constructor(
    readonly places: Places,
    readonly sessionId: string,
    private readonly digest: string,
  ) {
    this.#record = readSession(places.root, sessionId);
    this.folder = sessionFolder(places.root, sessionId);
  }

  /** Resolves when bridges can connect. @throws DaemonRuns */
  static async start(places: Places, sessionId: string): Promise<Daemon> {
    const daemon = new Daemon(places, sessionId, await ownDigest());
    await daemon.#start();
    return daemon;
  }

  /** Resolves when it is over. */
  get ended(): Promise<void> {
    return this.#ended.promise;
  }

  get record(): SessionRecord {
    return this.#record;
  }

  get operations(): Operations {
    return this.#operations;
  }

  get workspace(): Workspace {
    return this.#workspace;
  }

  async #start(): Promise<void> {
    this.#lock = this.#claim();
    sealMemory();
    const { root, base, home } = this.places;
    const socket = join(runtimeFolder(process.env), `${this.sessionId}.sock`);
    const { policy: effective, envRefs, cwd, key } = this.#record;
    const login = await loginPath(process.env);
    // Tools, and what their variants ask for, are found as the user finds programs.
    if (login !== undefined) process.env.PATH = login;
    const policy = openPolicy(effective, envRefs, {
      home,
      environment: process.env,
      folder: this.folder,
      own: ownGlobs(cwd, this.#record.managed ? [] : [root, base]),
      loginPath: login,
    });
    this.#workspace = new Workspace(cwd, policy);
    this.#operations = await createOperations({
      folder: this.folder,
      sessionId: this.sessionId,
      base,
      root,
      cwd,
      policy,
      key: Buffer.from(key, "base64"),
      settings: () => this.#record.settings,
      sockets: [socket],
      notify: (method: string, params: unknown) => {
        const peer = this.#attachment?.peer;
        const much = method === "output" && (params as OpOutput).data.length > muchOutput;
        if (much) peer?.pass(outputLine(params as OpOutput));
        else peer?.notify(method, params);
      },
      log: (sentence: string) => console.error(`${new Date().toISOString()} ${sentence}`),
    });
    const { sandbox } = this.#operations;
    rememberSandbox(root, { boot: bootId(), digest: this.digest, sandbox });
    if (sandbox.abi < effective.require_landlock_abi)
      throw coded(
        "sandbox.abi",
        `the policy of this host wants Landlock ${effective.require_landlock_abi}, and its kernel has ${sandbox.abi || "none"}`,
      );
    this.#listen(socket);
    writeDaemonFile(this.folder, {
      pid: process.pid,
      socket,
      token: this.#token,
      digest: this.digest,
      proto: protocol,
    });
    setInterval(() => void this.#look(), interval).unref();
    void this.#sweep();
  }

  /** What others have left here beyond their time. */
  async #sweep(): Promise<void> {
    const { problems } = await sweep(this.places, { except: this.sessionId, measure: false });
    for (const problem of problems) console.error(`${new Date().toISOString()} ${problem}`);
  }

  /** One daemon a session: the kernel lets go of an abstract name when its process ends, however it ends. The name tells nobody the id. */
  #claim(): { stop(closeActive?: boolean): void } {
    const name = createHash("sha256")
      .update(`${this.sessionId} ${this.#record.key}`)
      .digest("hex")
      .slice(0, 32);
    try {
      return Bun.listen({
        unix: `\0ollie-remote-${name}`,
        socket: { open: (socket) => void socket.end(), data() {} },
      });
    } catch {
      throw new DaemonRuns();
    }
  }

  #listen(path: string): void {
    try {
      // Of a daemon that is dead: the living one holds the claim.
      unlinkSync(path);
    } catch {}
    const mask = process.umask(0o177);
    try {
      this.#listener = Bun.listen<SocketLink | undefined>({
        unix: path,
        socket: SocketLink.handlers((link) => this.#welcome(link)),
      });
    } finally {
      process.umask(mask);
    }
  }

  #welcome(link: SocketLink): void {
    const peer: Peer = new Peer({
      sink: link,
      handlers: { "daemon.attach": (params) => this.#attach(link, peer, daemonAttach.parse(params)) },
      limit: maxFrame,
      onBroken: () => link.end(),
    });
    link.onBytes = (bytes) => peer.receive(bytes);
    link.onClose = () => {
      peer.close();
      if (this.#attachment?.peer === peer) this.#detached();
    };
  }

  #attach(link: SocketLink, peer: Peer, asked: z.infer<typeof daemonAttach>) {
    if (!same(asked.token, this.#token)) throw coded("session.token", "the daemon does not know this bridge");
    const { client, settings, takeover } = asked;
    const held = this.#attachment;
    if (held && held.client !== client && !takeover)
      throw coded("session.held", "another client is attached to this session", {
        hint: "close it there, or take the session over",
      });
    if (this.#record.client !== client && !takeover)
      throw coded("session.held", "this session is another client's", {
        hint: "take it over if you mean it",
      });
    // Whatever attachment it follows: the answer to that one may have been lost with its connection, which seems to stand here.
    if (held) {
      held.peer.notify("superseded", {});
      void held.peer.flush().finally(() => held.link.end());
    }
    this.#operations.detach();
    this.#record = {
      ...this.#record,
      client,
      epoch: this.#record.epoch + 1,
      used: Date.now(),
      ...(settings && { settings }),
    };
    writeSession(this.places.root, this.#record);
    this.#attachment = { peer, link, client };
    peer.use(this.#handlers());
    return this.report();
  }

  #handlers(): Record<string, Handler> {
    const touch = () => {
      this.#pause.refresh();
      this.#record = { ...this.#record, used: Date.now() };
    };
    return sessionMethods(this, touch);
  }

  /** As `attached` of the protocol. */
  report() {
    const { sessionId, epoch, cwd, policyHash, envRefHash, sealed } = this.#record;
    return {
      sessionId,
      epoch,
      cwd,
      policyHash,
      envRefHash,
      digest: this.digest,
      state: sealed ? ("sealed" as const) : ("active" as const),
      sandbox: this.#operations.sandbox,
      ops: this.#operations.list(),
      asks: this.#operations.asks,
    };
  }

  configure(settings: SessionSettings): void {
    this.#keep({ settings });
  }

  /** Nothing is run or changed any more; what has been stays to be read. */
  async seal(): Promise<void> {
    this.#keep({ sealed: true });
    await this.#operations.seal();
  }

  renew(): void {
    this.#keep({ created: Date.now(), used: Date.now() });
  }

  #keep(change: Partial<SessionRecord>): void {
    this.#record = { ...this.#record, ...change };
    writeSession(this.places.root, this.#record);
  }

  #detached(): void {
    this.#attachment = undefined;
    this.#operations.detach();
    this.#keep({ used: Date.now() });
  }

  /** Ends where nobody has used the session for as long as it may rest; its files go with the next sweep. */
  async #look(): Promise<void> {
    if (this.#attachment || this.#operations.running > 0) return;
    const { used, created, policy } = this.#record;
    const now = Date.now();
    if (now - used > policy.idle_ttl_secs * 1000 || now - created > policy.max_ttl_secs * 1000)
      await this.stop();
  }

  async stop(): Promise<void> {
    this.#listener?.stop(true);
    await this.#operations.close();
    this.#workspace.close();
    removeDaemonFile(this.folder);
    this.#lock?.stop(true);
    this.#ended.resolve();
  }
}

/** A working folder may be the home folder, and hold what is ollie's own. */
function ownGlobs(cwd: string, folders: readonly string[]): string[] {
  return folders
    .map((folder) => relative(cwd, folder))
    .filter((path) => path !== "" && !path.startsWith(".."))
    .map((path) => path.replace(/[\\*?[\]{}!]/g, "\\$&"));
}

function same(a: string, b: string): boolean {
  const digest = (text: string) => createHash("sha256").update(text).digest();
  return timingSafeEqual(digest(a), digest(b));
}
