/** A language server as a process, and the JSON-RPC connection to it. */
import { type ChildProcessWithoutNullStreams, spawn } from "node:child_process";
import {
  CancellationTokenSource,
  createMessageConnection,
  type MessageConnection,
  StreamMessageReader,
  StreamMessageWriter,
} from "ollie:jsonrpc";
import type { ServerSpec } from "./servers.ts";

/** Characters of stderr that are kept: its end. */
const kept = 2000;

/** The server died or does not follow the protocol; whoever asked it may ask a new one. */
export class ServerGone extends Error {}

export class ServerProcess {
  readonly connection: MessageConnection;
  /** Set when it is of no use any more: why. */
  gone?: string;
  /** Rejects with ServerGone when it is. */
  readonly ended: Promise<never>;
  /** Counts what came from it, to tell a slow server from a dead one. */
  heard = 0;
  private readonly child: ChildProcessWithoutNullStreams;
  private readonly fail: (reason: ServerGone) => void;
  private said = "";

  constructor(spec: ServerSpec, root: string) {
    const { promise, reject } = Promise.withResolvers<never>();
    promise.catch(() => {});
    this.ended = promise;
    this.fail = reject;
    const [program, ...args] = spec.command;
    this.child = spawn(Bun.which(program!) ?? program!, args, { cwd: root, stdio: "pipe" });
    this.child.stderr.on("data", (chunk: Buffer) => {
      this.said = (this.said + chunk.toString("utf8")).slice(-kept);
    });
    this.child.on("error", (error) => this.give(`it could not be started: ${error.message}`));
    // A dying server's last words come before its streams close.
    this.child.on("close", (code, signal) => this.give(signal ? `killed by ${signal}` : `exit ${code}`));
    this.child.stdin.on("error", () => {}); // "close" follows
    this.child.stdout.on("data", () => {
      this.heard++;
    });
    this.connection = createMessageConnection(
      new StreamMessageReader(this.child.stdout),
      new StreamMessageWriter(this.child.stdin),
      { error() {}, warn() {}, info() {}, log() {} },
    );
    this.connection.onError(([error]) => this.drop(`it does not speak the protocol: ${error.message}`));
  }

  /**
   * @param limit milliseconds
   * @throws ServerGone, also where it hangs; Error with the server's words, or if it does not answer in time
   */
  async request<T>(method: string, params: unknown, limit: number, signal?: AbortSignal): Promise<T> {
    if (this.gone) throw new ServerGone(this.gone);
    const cancel = new CancellationTokenSource();
    const giveUp = () => cancel.cancel();
    signal?.addEventListener("abort", giveUp, { once: true });
    const late = Promise.withResolvers<never>();
    const before = this.heard;
    const timer = setTimeout(() => {
      const time = `${limit / 1000} s`;
      // One from which nothing at all has come meanwhile would hang the next call too.
      if (this.heard === before) this.drop(`it hung: nothing came from it for ${time} after ${method}`);
      else late.reject(new Error(`it did not answer ${method} within ${time}`));
    }, limit);
    try {
      const answer = this.connection.sendRequest<T>(method, params, cancel.token);
      answer.catch(() => {});
      return await Promise.race([answer, late.promise, this.ended]);
    } catch (error) {
      if (this.gone && !(error instanceof ServerGone)) throw new ServerGone(this.gone);
      throw error;
    } finally {
      clearTimeout(timer);
      cancel.cancel();
      cancel.dispose();
      signal?.removeEventListener("abort", giveUp);
    }
  }

  notify(method: string, params: unknown): void {
    if (!this.gone) this.connection.sendNotification(method, params).catch(() => {});
  }

  /** Ends it, for this reason. */
  drop(reason: string): void {
    this.give(reason);
    this.child.kill("SIGKILL");
  }

  private give(reason: string): void {
    if (this.gone) return;
    const said = this.said.trim();
    this.gone = (said ? `${reason}; it wrote: ${said}` : reason).replace(/\s*\n\s*/g, "; ");
    this.fail(new ServerGone(this.gone));
    this.connection.dispose();
  }
}
