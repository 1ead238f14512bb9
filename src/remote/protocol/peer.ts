/**
 * One end of a connection: JSON-RPC 2.0, one message a line. Requests run side by side, answers come in any order. Used by the client, the
 * bridge and the daemon alike.
 */
import type { z } from "zod";
import { toFault } from "../../fault.ts";
import { coded, fromWire, rpcCodes, toWire, wireError } from "./errors.ts";
import { Frames } from "./frames.ts";
import { maxFrame } from "./limits.ts";

/** Where the bytes go. */
export interface Sink {
  /** Resolves when more may come. */
  write(bytes: Uint8Array): Promise<void>;
}

/** Answers one method. What it throws becomes the error of the answer. */
export type Handler = (params: unknown, call: { signal: AbortSignal }) => unknown;

export interface PeerOptions {
  sink: Sink;
  /** By method; of requests and of notifications. */
  handlers?: Record<string, Handler>;
  /** Lines that no handler knows: true = it was taken care of, as the bridge passes on what is the daemon's. */
  passOn?: (line: string, message: { id?: unknown; method?: unknown }) => boolean;
  /** Bytes of a line. */
  limit?: number;
  /** What is wrong with what the other end says, for a log. */
  onComplaint?: (what: string) => void;
  /** The other end speaks no protocol any more. */
  onBroken?: (error: Error) => void;
}

interface Waiting {
  resolve(result: unknown): void;
  reject(error: Error): void;
}

/** Milliseconds until an answer must have come, where nothing else is said. */
const patience = 30_000;
/** Lines in a row that are no JSON, after which the stream cannot be trusted. */
const mostNonsense = 3;

export class Peer {
  #next = 1;
  readonly #waiting = new Map<number, Waiting>();
  /** Requests of the other end that run here. */
  readonly #running = new Map<unknown, AbortController>();
  readonly #frames: Frames;
  #handlers: Record<string, Handler>;
  #nonsense = 0;
  #outgoing: (string | Uint8Array)[] = [];
  #sending?: Promise<void>;
  #closed?: Error;
  readonly #closing = new Set<(error: Error) => void>();

  constructor(private readonly options: PeerOptions) {
    this.#handlers = options.handlers ?? {};
    this.#frames = new Frames(options.limit ?? maxFrame, {
      onLine: (line) => this.#line(line),
      onTooLong: (bytes) => this.#tooLong(bytes),
    });
  }

  /** Answers these methods from now on, instead of what it has answered before. */
  use(handlers: Record<string, Handler>): void {
    this.#handlers = handlers;
  }

  /** Bytes from the other end. */
  receive(bytes: Uint8Array): void {
    if (!this.#closed) this.#frames.add(bytes);
  }

  /** Reads until the other end has nothing more to say, then closes. */
  async readAll(source: AsyncIterable<Uint8Array>): Promise<void> {
    try {
      for await (const bytes of source) this.receive(bytes);
      this.close();
    } catch (error) {
      this.close(toFault(error));
    }
  }

  /**
   * Resolves with the answer.
   * @param options.limit milliseconds; `schema`: what the answer must look like
   * @throws the other end's error as a Fault; `proto.timeout`, `proto.closed`, `proto.answer`
   */
  async request<T>(
    method: string,
    params: unknown,
    options: { schema?: z.ZodType<T>; limit?: number; signal?: AbortSignal } = {},
  ): Promise<T> {
    const { schema, limit = patience, signal } = options;
    if (this.#closed) throw this.#closed;
    signal?.throwIfAborted();
    const id = this.#next++;
    const { promise, resolve, reject } = Promise.withResolvers<unknown>();
    this.#waiting.set(id, { resolve, reject });
    const timer = setTimeout(
      () =>
        reject(
          coded("proto.timeout", `${method}: the host did not answer in ${limit / 1000} s`, { retry: true }),
        ),
      limit,
    );
    const abort = () => {
      this.notify("$/cancel", { id });
      reject(signal!.reason);
    };
    signal?.addEventListener("abort", abort, { once: true });
    try {
      this.#send({ jsonrpc: "2.0", id, method, params });
      const result = await promise;
      const parsed = schema?.safeParse(result);
      if (parsed && !parsed.success)
        throw coded(
          "proto.answer",
          `${method}: the answer makes no sense (${parsed.error.issues[0]?.message})`,
        );
      return (parsed ? parsed.data : result) as T;
    } finally {
      clearTimeout(timer);
      signal?.removeEventListener("abort", abort);
      this.#waiting.delete(id);
    }
  }

  notify(method: string, params: unknown): void {
    if (!this.#closed) this.#send({ jsonrpc: "2.0", method, params });
  }

  /** A line as it is: text without its newline, bytes with it. */
  pass(line: string | Uint8Array): void {
    if (this.#closed) return;
    this.#outgoing.push(line);
    this.#sending ??= this.#drain();
  }

  /** Resolves when all that was said is on its way. */
  async flush(): Promise<void> {
    while (this.#sending) await this.#sending;
  }

  /** Calls back with the error of `close`, at once where it has been. @returns what takes that back */
  onClose(listener: (error: Error) => void): () => void {
    if (this.#closed) listener(this.#closed);
    else this.#closing.add(listener);
    return () => this.#closing.delete(listener);
  }

  get closed(): boolean {
    return this.#closed !== undefined;
  }

  /** Whoever still waits for an answer gets the error. */
  close(error: Error = coded("proto.closed", "the connection to the host is closed", { retry: true })): void {
    if (this.#closed) return;
    this.#closed = error;
    for (const { reject } of this.#waiting.values()) reject(error);
    this.#waiting.clear();
    for (const running of this.#running.values()) running.abort(error);
    this.#running.clear();
    for (const listener of [...this.#closing]) listener(error);
    this.#closing.clear();
  }

  #line(line: string): void {
    let message: unknown;
    try {
      message = JSON.parse(line);
    } catch {
      this.#complain(`a line that is no JSON: ${JSON.stringify(line.slice(0, 200))}`);
      if (++this.#nonsense >= mostNonsense) this.#break("what comes from the host is not the protocol");
      return;
    }
    if (typeof message !== "object" || message === null || Array.isArray(message)) {
      this.#complain("a line that is no message");
      return;
    }
    this.#nonsense = 0;
    this.#message(line, message as Record<string, unknown>);
  }

  #message(line: string, message: Record<string, unknown>): void {
    const { id, method, params } = message;
    if (typeof method !== "string") {
      if (!this.#answered(message) && !this.options.passOn?.(line, message))
        this.#complain(`an answer that nobody waits for: ${JSON.stringify(id)}`);
      return;
    }
    if (method === "$/cancel") {
      this.#running.get((params as { id?: unknown } | undefined)?.id)?.abort();
      this.options.passOn?.(line, message);
      return;
    }
    const handler = Object.hasOwn(this.#handlers, method) ? this.#handlers[method] : undefined;
    if (handler) void this.#run(handler, id, params);
    else if (!this.options.passOn?.(line, message) && id !== undefined)
      this.#answer(id, {
        error: { code: rpcCodes.noMethod, message: `there is no method ${method.slice(0, 100)}` },
      });
  }

  #answered({ id, result, error }: Record<string, unknown>): boolean {
    const waiting = typeof id === "number" ? this.#waiting.get(id) : undefined;
    if (!waiting) return false;
    const parsed = error === undefined ? undefined : wireError.safeParse(error);
    if (!parsed) waiting.resolve(result);
    else
      waiting.reject(
        parsed.success ? fromWire(parsed.data) : coded("proto.answer", "the host's error makes no sense"),
      );
    return true;
  }

  async #run(handler: Handler, id: unknown, params: unknown): Promise<void> {
    const running = new AbortController();
    if (id !== undefined) this.#running.set(id, running);
    try {
      const result = await handler(params, { signal: running.signal });
      if (id !== undefined) this.#answer(id, { result: result ?? null });
    } catch (error) {
      if (id !== undefined) this.#answer(id, { error: toWire(error) });
      else this.#complain(toFault(error).message);
    } finally {
      if (this.#running.get(id) === running) this.#running.delete(id);
    }
  }

  #answer(id: unknown, answer: { result: unknown } | { error: unknown }): void {
    if (!this.#closed) this.#send({ jsonrpc: "2.0", id, ...answer });
  }

  #tooLong(bytes: number): void {
    this.#complain(`a line of ${bytes} bytes, longer than agreed`);
    const message = `a line of ${bytes} bytes is longer than the ${this.options.limit ?? maxFrame} that are allowed`;
    // Whose it was cannot be known without reading it.
    this.#answer(null, { error: toWire(coded("frame.too_long", message)) });
  }

  #break(why: string): void {
    const error = coded("proto.garbage", why, { retry: true });
    this.close(error);
    this.options.onBroken?.(error);
  }

  #complain(what: string): void {
    this.options.onComplaint?.(what);
  }

  #send(message: object): void {
    this.pass(JSON.stringify(message));
  }

  /** All that is said within a tick is one write. */
  async #drain(): Promise<void> {
    await Promise.resolve();
    try {
      while (this.#outgoing.length > 0 && !this.#closed) {
        const lines = this.#outgoing;
        this.#outgoing = [];
        for (const bytes of joined(lines)) await this.options.sink.write(bytes);
      }
    } catch (error) {
      this.close(toFault(error));
    } finally {
      this.#outgoing = [];
      this.#sending = undefined;
    }
  }
}

/** Small ones become one write; those that are bytes already are not copied. */
function* joined(lines: readonly (string | Uint8Array)[]): Generator<Uint8Array> {
  let texts: string[] = [];
  for (const line of [...lines, undefined]) {
    if (typeof line === "string") texts.push(line);
    else {
      if (texts.length > 0) yield Buffer.from(`${texts.join("\n")}\n`);
      texts = [];
      if (line) yield line;
    }
  }
}
