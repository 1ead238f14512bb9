/**
 * `ollie-remote serve`: the process at the end of an SSH channel. Says hello, makes or finds a session, and passes on what is said between the
 * client and the session's daemon. It keeps nothing: when the channel ends, it ends.
 */
import { mkdirSync, realpathSync, statSync } from "node:fs";
import { join } from "node:path";
import type { z } from "zod";
import { toFault } from "../../fault.ts";
import { narrow, policyHash, stillHolds } from "../policy/effective.ts";
import { readHardPolicies } from "../policy/hard-policy.ts";
import { clientPolicy } from "../policy/keys.ts";
import { envRefHash } from "../policy/session-policy.ts";
import { coded } from "../protocol/errors.ts";
import { capabilities, clientHello } from "../protocol/hello.ts";
import { maxFrame, protocol } from "../protocol/limits.ts";
import { Peer, type Sink } from "../protocol/peer.ts";
import { type SessionSettings, sessionAttach, sessionCreate } from "../protocol/session.ts";
import { type DaemonLink, reachDaemon } from "./daemon-process.ts";
import { helloOf } from "./facts.ts";
import { hostMethods } from "./host-methods.ts";
import { parsed } from "./params.ts";
import { type Places, sessionFolder } from "./places.ts";
import { readSession, type SessionRecord, writeSession } from "./session-record.ts";

export class Bridge {
  readonly #peer: Peer;
  #client?: string;
  #daemon?: DaemonLink;
  #sessionId?: string;
  /** What the daemon says comes here; answers to its first request go to it. */
  #daemonPeer?: Peer;
  readonly #over = Promise.withResolvers<void>();

  constructor(
    private readonly places: Places,
    sink: Sink,
    /** Working folder of sessions that name none. */
    private readonly cwd: string | undefined,
  ) {
    const host = hostMethods(places);
    this.#peer = new Peer({
      sink,
      limit: maxFrame,
      handlers: {
        hello: (params) => this.#hello(params),
        "session.create": (params) => this.#create(parsed("session.create", sessionCreate, params)),
        "session.attach": (params) => this.#attach(parsed("session.attach", sessionAttach, params)),
        "session.detach": () => this.#detach(),
        ...host,
        "session.destroy": (params, call) => {
          // Its daemon ends, and this connection is not to end with it before it has answered.
          if ((params as { sessionId?: unknown } | null)?.sessionId === this.#sessionId) this.#detach();
          return host["session.destroy"]!(params, call);
        },
      },
      passOn: (line, message) => this.#passOn(line, message),
      onBroken: () => this.#over.resolve(),
      onComplaint: (what) => console.error(`ollie-remote: ${what}`),
    });
  }

  /** Until the client has nothing more to say. */
  async run(stdin: AsyncIterable<Uint8Array>): Promise<void> {
    this.#peer.notify("hello", await helloOf(this.places));
    const read = this.#peer.readAll(stdin);
    await Promise.race([read, this.#over.promise]);
    this.#daemon?.link.end();
    await Promise.race([this.#peer.flush(), Bun.sleep(500)]);
  }

  #hello(params: unknown): object {
    const { proto, client, need } = parsed("hello", clientHello, params);
    if (proto < protocol.min || proto > protocol.max)
      throw coded("proto.version", `protocol ${proto} is none of ${protocol.min} to ${protocol.max}`);
    const missing = need.filter((name) => !(capabilities as readonly string[]).includes(name));
    if (missing.length > 0)
      throw coded(
        "caps.missing",
        `this host cannot ${missing.join(", ")}; it can ${capabilities.join(", ")}`,
      );
    this.#client = client;
    return {};
  }

  async #create(asked: z.infer<typeof sessionCreate>): Promise<unknown> {
    const client = this.#who();
    const { root, home, policy: flag } = this.places;
    const { sessionId, workspace, settings, envRefs, key } = asked;
    const policy = narrow(
      readHardPolicies(process.env, flag).policy,
      parsed("session.create", clientPolicy, asked.policy ?? {}),
    );
    const present = existing(root, sessionId);
    // Asked for again after an answer that was lost: the same session, whatever it was.
    if (present) {
      if (present.key !== key) throw coded("session.exists", `there is a session ${sessionId} already`);
      return this.#enter(present.sessionId, { settings, epoch: present.epoch, takeover: false, client });
    }
    const folder = sessionFolder(root, sessionId);
    const managed = workspace.kind === "managed";
    let cwd: string;
    if (workspace.kind === "managed") {
      cwd = join(folder, "workspace");
      mkdirSync(cwd, { recursive: true, mode: 0o700 });
      if (workspace.seed === "git") await clone(workspace.url, cwd);
    } else cwd = folderOf(workspace.path || this.cwd || "~", home);
    writeSession(root, {
      v: 1,
      sessionId,
      client,
      created: Date.now(),
      used: Date.now(),
      cwd: realpathSync(cwd),
      managed,
      policy,
      policyHash: policyHash(policy),
      envRefs,
      envRefHash: envRefHash(envRefs),
      key,
      settings,
      epoch: 0,
      sealed: false,
    });
    return this.#enter(sessionId, { settings, epoch: 0, takeover: false, client });
  }

  #attach({ sessionId, ...asked }: z.infer<typeof sessionAttach>): Promise<unknown> {
    const client = this.#who();
    const { root } = this.places;
    const record = readSession(root, sessionId);
    if (asked.policyHash !== record.policyHash)
      throw coded(
        "session.policy_broader",
        `session ${sessionId} was made under another policy than the one that is asked for`,
      );
    // The host's own policy may have become narrower since.
    const { policy: hard } = readHardPolicies(process.env, this.places.policy);
    if (!stillHolds(record.policy, hard))
      throw coded(
        "session.policy_broader",
        `the policy of this host allows less than session ${sessionId} was made with`,
        { hint: "make another session" },
      );
    if (asked.envRefHash !== record.envRefHash)
      throw coded("session.envref", `session ${sessionId} was made with other environment references`);
    return this.#enter(sessionId, { ...asked, client });
  }

  async #enter(
    sessionId: string,
    asked: { settings?: SessionSettings; epoch: number; takeover: boolean; client: string },
  ): Promise<unknown> {
    if (this.#daemon) throw coded("session.attached", "this connection has a session already");
    const daemon = await reachDaemon(this.places, sessionId);
    const { link, file } = daemon;
    if (file.proto.min > protocol.max || file.proto.max < protocol.min) {
      link.end();
      throw coded(
        "session.digest",
        `the session's daemon speaks protocol ${file.proto.min} to ${file.proto.max}, and this program another`,
      );
    }
    const peer = new Peer({ sink: link, limit: maxFrame, passOn: (line) => this.#fromDaemon(line) });
    link.onBytes = (bytes) => peer.receive(bytes);
    link.onClose = () => {
      peer.close();
      if (this.#daemon !== daemon) return;
      // The client connects anew, and finds another daemon or starts one.
      this.#over.resolve();
    };
    try {
      const answer = await peer.request("daemon.attach", { token: file.token, ...asked });
      this.#daemon = daemon;
      this.#sessionId = sessionId;
      this.#daemonPeer = peer;
      return answer;
    } catch (error) {
      link.end();
      throw error;
    }
  }

  #detach(): object {
    const { link } = this.#daemon ?? {};
    this.#daemon = undefined;
    this.#sessionId = undefined;
    this.#daemonPeer = undefined;
    link?.end();
    return {};
  }

  /** What is no method of the bridge's is the daemon's. */
  #passOn(line: string, { id, method }: { id?: unknown; method?: unknown }): boolean {
    if (this.#daemonPeer) {
      this.#daemonPeer.pass(line);
      return true;
    }
    if (id === undefined || typeof method !== "string") return false;
    if (!/^(?:op|file|tools|blob|session|project|sudo)\.|^(?:execute|ping)$/.test(method)) return false;
    const message = `${method} needs a session: send session.create or session.attach first`;
    this.#peer.pass(
      JSON.stringify({
        jsonrpc: "2.0",
        id,
        error: { code: -32000, message, data: { code: "session.none", infra: true, retry: false } },
      }),
    );
    return true;
  }

  #fromDaemon(line: string): boolean {
    this.#peer.pass(line);
    return true;
  }

  #who(): string {
    if (this.#client === undefined) throw coded("proto.hello", "the client has not said hello");
    return this.#client;
  }
}

function existing(root: string, id: string): SessionRecord | undefined {
  try {
    return readSession(root, id);
  } catch (error) {
    if (toFault(error).kind === "missing") return undefined;
    throw error;
  }
}

function folderOf(path: string, home: string): string {
  const full = path === "~" || path.startsWith("~/") ? home + path.slice(1) : path;
  if (!full.startsWith("/"))
    throw coded("session.cwd", `the working folder ${path} is no absolute path`, {
      hint: "write /home/me/project, or ~/project",
    });
  try {
    if (statSync(full).isDirectory()) return full;
  } catch {}
  throw coded("session.cwd", `there is no folder ${full} on this host`);
}

async function clone(url: string | undefined, cwd: string): Promise<void> {
  if (!url || url.startsWith("-"))
    throw coded("session.seed", "a workspace from git needs the address of a repository");
  const child = Bun.spawn(["git", "clone", "--quiet", "--", url, cwd], {
    env: { ...(process.env as Record<string, string>), GIT_TERMINAL_PROMPT: "0" },
    stdin: "ignore",
    stdout: "ignore",
    stderr: "pipe",
  });
  const [status, said] = await Promise.all([child.exited, new Response(child.stderr).text()]);
  if (status !== 0) throw coded("session.seed", `git could not clone ${url}: ${said.trim().slice(0, 500)}`);
}
