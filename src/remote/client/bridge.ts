/** One running `ollie-remote serve`: the channel, the protocol on it, and what it has said of itself. */
import { type Fault, toFault } from "../../fault.ts";
import type { Booted } from "../bootstrap/bootstrap.ts";
import { coded } from "../protocol/errors.ts";
import { type ClientHello, type HostHello, hostHello } from "../protocol/hello.ts";
import { protocol } from "../protocol/limits.ts";
import { type Handler, Peer } from "../protocol/peer.ts";
import { untilAborted } from "./connections.ts";
import { Heartbeat } from "./heartbeat.ts";

/** Without these nothing works; `op.elevate` is missed only where it is used. */
const needed = ["session", "op", "op.detach", "tools", "blob"];
const wanted = ["op.elevate", "file", "execute"];

export interface BridgeOptions {
  /** What the host tells unasked. */
  handlers: Record<string, Handler>;
  /** Bytes of a line. */
  maxFrame: number;
  /** Milliseconds for an answer. */
  limit: number;
  /** Told once, where nobody here has closed it. */
  onLost(fault: Fault): void;
}

export class Bridge {
  readonly peer: Peer;
  readonly digest: string;
  readonly #hello = Promise.withResolvers<HostHello>();
  readonly #heartbeat: Heartbeat;
  #closed = false;

  constructor(
    private readonly booted: Booted,
    private readonly options: BridgeOptions,
  ) {
    const { channel, digest } = booted;
    this.digest = digest;
    this.#hello.promise.catch(() => {});
    this.peer = new Peer({
      sink: channel,
      limit: options.maxFrame,
      handlers: {
        ...options.handlers,
        hello: (params) => this.#hello.resolve(hostHello.parse(params)),
        superseded: () => this.lose(coded("session.superseded", "somebody else has taken over the session")),
      },
      onBroken: (error) => this.lose(toFault(error)),
    });
    this.#heartbeat = new Heartbeat(this.peer, (error) => this.lose(toFault(error)));
    void this.peer.readAll(this.#heard(booted.stdout));
    void channel.closed.then(({ fault, code, signal }) => this.lose(fault ?? this.#ended(code, signal)));
  }

  /**
   * What the host has said of itself; from then on it takes requests.
   * @throws CodedFault `caps.missing`, `proto.version`, `proto.timeout`
   */
  async greet(client: string, signal: AbortSignal): Promise<HostHello> {
    const { limit } = this.options;
    const silence = setTimeout(
      () => this.#hello.reject(coded("proto.timeout", "ollie-remote runs and says nothing", { retry: true })),
      limit,
    );
    const hello = await untilAborted(this.#hello.promise, signal).finally(() => clearTimeout(silence));
    const proto = Math.min(hello.proto.max, protocol.max);
    if (proto < Math.max(hello.proto.min, protocol.min))
      throw coded(
        "proto.version",
        `ollie-remote there speaks the protocol ${hello.proto.min} to ${hello.proto.max}, this program ${protocol.min} to ${protocol.max}`,
      );
    const lacking = needed.filter((name) => !hello.caps.includes(name));
    if (lacking.length > 0)
      throw coded(
        "caps.missing",
        `the host cannot do ${lacking.join(", ")}; needed: ${needed.join(", ")}; it can do: ${hello.caps.join(", ") || "nothing"}`,
      );
    const mine: ClientHello = { proto, client, need: needed, want: wanted };
    await this.peer.request("hello", mine, { limit, signal });
    return hello;
  }

  /** It is of no use any more. */
  lose(fault: Fault): void {
    if (this.#closed) return;
    this.#shut(fault);
    this.options.onLost(fault);
  }

  /** Leaves it; what runs there goes on. */
  close(): void {
    if (this.#closed) return;
    this.#shut(coded("ssh.dropped", "the connection has been closed", { retry: true }));
  }

  #shut(fault: Fault): void {
    this.#closed = true;
    this.#heartbeat.stop();
    this.#hello.reject(fault);
    this.peer.close(fault);
    this.booted.channel.close();
  }

  async *#heard(source: AsyncIterable<Uint8Array>): AsyncIterable<Uint8Array> {
    try {
      for await (const bytes of source) {
        this.#heartbeat.heard();
        yield bytes;
      }
    } finally {
      // The channel says why, where it knows; it may take a moment to.
      setTimeout(() => this.lose(this.#ended()), 1000).unref();
    }
  }

  #ended(code?: number, signal?: string): Fault {
    const how = signal ? ` (killed by ${signal})` : code === undefined ? "" : ` (status ${code})`;
    const said = this.booted.channel.stderr().trim().split("\n").at(-1)?.slice(0, 200);
    return coded("ssh.dropped", `ollie-remote on the host has ended${how}${said ? `: ${said}` : ""}`, {
      retry: true,
    });
  }
}
