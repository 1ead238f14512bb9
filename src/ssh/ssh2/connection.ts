/** An authenticated connection of ssh2. */
import type { Duplex } from "node:stream";
import type { Client, ClientChannel } from "ssh2";
import type { CodedFault } from "../../fault.ts";
import { sshFault } from "../fault.ts";
import type { SshChannel, SshConnection } from "../transport.ts";
import { Ssh2Channel } from "./channel.ts";

/** ssh2 has a question to the other host for its keepalive only, and no name for it that is public: what answers it is in a queue. */
interface Pinging {
  _callbacks: (() => void)[];
  _protocol: { ping(): void };
}

/** SSH_OPEN_ADMINISTRATIVELY_PROHIBITED and SSH_OPEN_RESOURCE_SHORTAGE do not matter here: sshd says SSH_OPEN_CONNECT_FAILED of both. */
const refusedOpen = /open fail/i;

export class Ssh2Connection implements SshConnection {
  readonly via = "ssh2";
  readonly closed: Promise<CodedFault | undefined>;
  private readonly end: (fault: CodedFault | undefined) => void;
  private over = false;

  /**
   * @param limit milliseconds that the host has for an answer when a channel is opened
   * @param release what else goes with the connection
   */
  constructor(
    private readonly client: Client,
    private readonly stream: Duplex,
    readonly hostKey: string,
    private readonly place: string,
    private readonly limit: number,
    release: () => void,
  ) {
    const { promise, resolve } = Promise.withResolvers<CodedFault | undefined>();
    this.closed = promise;
    this.end = (fault) => {
      if (this.over) return;
      this.over = true;
      resolve(fault);
      client.destroy();
      release();
    };
    // One of them for each channel that waits.
    stream.setMaxListeners(0);
    client.on("error", (error: Error & { level?: string }) => {
      if (error.level !== "agent") this.lost(error.message);
    });
    client.on("end", () => this.lost("it hung up"));
    client.on("close", () => this.lost("it hung up"));
  }

  async exec(command: string): Promise<SshChannel> {
    const channel = await this.opened<ClientChannel>((done) => this.client.exec(command, done));
    return new Ssh2Channel(channel, {
      place: this.place,
      pending: () => this.stream.writableLength,
      // A stream that has not refused anything does not tell when it is empty.
      drained: (then) => (this.stream.writableNeedDrain ? this.stream.once("drain", then) : then()),
      gone: this.closed,
    });
  }

  /** A stream to another host that this one connects to. */
  forward(host: string, port: number): Promise<ClientChannel> {
    return this.opened((done) => this.client.forwardOut("127.0.0.1", 0, host, port, done), `${host}:${port}`);
  }

  async probe(limit: number): Promise<void> {
    const answered = Promise.withResolvers<void>();
    const timer = setTimeout(() => this.lost(`no answer within ${limit / 1000} s`), limit);
    if (!this.over) {
      const pinging = this.client as unknown as Pinging;
      pinging._callbacks.push(() => answered.resolve());
      pinging._protocol.ping();
    }
    try {
      // In this order: a connection that ends answers its questions too.
      const gone = await Promise.race([this.closed.then((fault) => ({ fault })), answered.promise]);
      if (gone) throw gone.fault ?? this.dropped("it was closed here");
      if (this.over) throw (await this.closed) ?? this.dropped("it was closed here");
    } finally {
      clearTimeout(timer);
    }
  }

  close(): void {
    this.client.end();
    this.end(undefined);
  }

  private async opened<T>(
    open: (done: (error: Error | undefined, channel: T) => void) => void,
    onward?: string,
  ): Promise<T> {
    if (this.over) throw (await this.closed) ?? this.dropped("it was closed here");
    const answer = Promise.withResolvers<T>();
    const timer = setTimeout(
      () => answer.reject(sshFault("ssh.timeout", `${this.place} does not answer`, { retry: true })),
      this.limit,
    );
    this.closed.then((fault) => answer.reject(fault ?? this.dropped("it was closed here")));
    try {
      open((error, channel) =>
        error ? answer.reject(this.refusal(error, onward)) : answer.resolve(channel),
      );
      return await answer.promise;
    } finally {
      clearTimeout(timer);
    }
  }

  private refusal(error: Error, onward: string | undefined): CodedFault {
    const said = error.message.replace("(SSH) ", "");
    if (onward !== undefined)
      return sshFault("ssh.unreachable", `${this.place} has no way to ${onward}: ${said}`, {
        retry: true,
        hint: "is it up, and does the host in between allow forwarding (AllowTcpForwarding)?",
      });
    if (refusedOpen.test(said))
      return sshFault("ssh.refused", `${this.place} allows no further program on this connection`, {
        retry: true,
        hint: "MaxSessions of its sshd_config says how many",
      });
    return sshFault("ssh.no_shell", `${this.place} runs no programs: ${said}`);
  }

  private lost(why: string): void {
    this.end(this.dropped(why));
  }

  private dropped(why: string): CodedFault {
    return sshFault("ssh.dropped", `the connection to ${this.place} is gone: ${why}`, { retry: true });
  }
}
