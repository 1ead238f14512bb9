/** A program on the other host, over a channel of ssh2. */
import type { ClientChannel } from "ssh2";
import type { CodedFault } from "../../fault.ts";
import { sshFault } from "../fault.ts";
import { Flow, Tail, Waits } from "../flow.ts";
import type { SshChannel } from "../transport.ts";

type End = { code?: number; signal?: string; fault?: CodedFault };

/** More than this in the socket, and writers wait. Bytes. */
const mark = 256 << 10;
/** Milliseconds that ssh2 has to hand out what it still holds of a connection that is gone. */
const lag = 100;

/** What a channel needs of its connection. */
export interface Line {
  place: string;
  /** Bytes that the socket has not taken yet. */
  pending(): number;
  /** Calls back when the socket has room again. */
  drained(then: () => void): void;
  /** Resolves when the connection is gone. */
  gone: Promise<CodedFault | undefined>;
}

export class Ssh2Channel implements SshChannel {
  readonly stdout: AsyncIterable<Uint8Array>;
  readonly closed: Promise<End>;
  private readonly tail = new Tail();
  private readonly flow: Flow;
  private readonly waits = new Waits();
  private readonly finish: (end: End) => void;
  private over = false;
  /** Bytes in `write` that the window of the channel has not let through yet. */
  private held = 0;

  constructor(
    private readonly channel: ClientChannel,
    private readonly line: Line,
  ) {
    const { promise, resolve } = Promise.withResolvers<End>();
    this.closed = promise;
    this.flow = new Flow((stop) => (stop && !this.over ? channel.pause() : channel.resume()));
    this.stdout = this.flow;
    this.finish = (end) => {
      this.over = true;
      this.flow.end();
      this.waits.end();
      resolve(end);
    };
    channel.on("data", (bytes: Buffer) => this.flow.push(bytes));
    channel.stderr.on("data", (bytes: Buffer) => this.tail.push(bytes));
    channel.on("error", () => {});
    let exit: End | undefined;
    channel.on("exit", (code: number | null, signal?: string) => {
      exit = code === null ? { signal } : { code };
    });
    channel.on("close", () => this.finish(exit ?? (this.over ? broken : { fault: this.lost() })));
    /** What it means that the connection is gone. */
    let broken: End = {};
    line.gone.then((fault) => {
      if (this.over) return;
      this.over = true;
      this.waits.end();
      broken = fault ? { fault } : {};
      // What has come already is the reader's, and "close" follows behind it. It never comes where the socket is a channel of a connection
      // that is gone as well.
      channel.resume();
      setTimeout(() => this.finish(exit ?? broken), lag);
    });
  }

  stderr(): string {
    return this.tail.text;
  }

  get buffered(): number {
    return this.held + this.line.pending();
  }

  async write(bytes: Uint8Array): Promise<void> {
    if (this.over) throw await this.why();
    this.held += bytes.length;
    // When the connection goes, ssh2 does not come back to a write that waits for the window.
    const sent = await this.waits.until((done) => this.channel.write(bytes, (error) => done(!error)));
    this.held -= bytes.length;
    if (!sent) throw await this.why();
    if (this.line.pending() > mark) await this.waits.until((done) => this.line.drained(() => done(true)));
  }

  end(): void {
    this.channel.end();
  }

  close(): void {
    if (this.over) return;
    this.channel.close();
    this.finish({});
    // Nobody reads any more, but the channel ends only when everything was read.
    this.channel.resume();
  }

  private async why(): Promise<CodedFault> {
    return (
      (await this.closed).fault ??
      sshFault("ssh.dropped", `the program on ${this.line.place} takes nothing more`)
    );
  }

  private lost(): CodedFault {
    return sshFault(
      "ssh.dropped",
      `${this.line.place} closed the channel without a word on how the program ended`,
      { retry: true },
    );
  }
}
