/**
 * One request to a provider and its answer, watched: a limit for connecting, one for silence, the caller's wish to stop, and the first
 * thing that went wrong. Providers' libraries get `fetch` from here, so that none of this depends on them.
 */
import { connect } from "node:net";
import { Fault } from "../fault.ts";
import { BackendError } from "./backend.ts";
import { broken } from "./gate.ts";
import { providerError } from "./provider-error.ts";

/** Milliseconds; 0 = no limit. */
export interface Limits {
  /** Until the host must have taken the connection. A host that took it and computes is left alone. */
  connect: number;
  /** Until the first event: loading a model or reading a long prompt takes its time. */
  first: number;
  /** Between two events. Comments and blank lines that keep a connection alive are no events. */
  idle: number;
}

/** Limits of small questions: lists of models, context windows. */
export const lookupLimits: Limits = { connect: 5000, first: 5000, idle: 5000 };

/** For questions whose answer is shared: nobody's stop ends them. */
export const never = new AbortController().signal;

/** Waits for something that is shared, as long as this caller wants to. */
export function asLongAs<T>(signal: AbortSignal, shared: Promise<T>): Promise<T> {
  return new Promise((resolve, reject) => {
    const stop = () => reject(new Fault("interrupted", "the request was cancelled"));
    if (signal.aborted) stop();
    signal.addEventListener("abort", stop, { once: true });
    shared.then(resolve, reject).finally(() => signal.removeEventListener("abort", stop));
  });
}

export class Exchange {
  /** Aborted by the caller, by a limit, or by the end of the exchange; closes the socket. */
  readonly signal: AbortSignal;
  readonly #controller = new AbortController();
  readonly #onStop = () => this.#controller.abort(this.#stop.reason);
  readonly #stop: AbortSignal;
  #failure?: BackendError;
  #ended = false;
  #timer?: NodeJS.Timeout;

  /** @param secret the key, which is never shown */
  constructor(
    readonly backend: string,
    readonly limits: Limits,
    stop: AbortSignal,
    readonly secret?: string,
  ) {
    this.#stop = stop;
    this.signal = this.#controller.signal;
    stop.addEventListener("abort", this.#onStop, { once: true });
    if (stop.aborted) this.#onStop();
    this.#arm(limits.first);
  }

  get failure(): BackendError | undefined {
    return this.#failure;
  }

  /** An event has arrived. */
  alive(): void {
    this.#arm(this.limits.idle);
  }

  /** The end signal has arrived; what may follow (a count of tokens) is waited for no longer than `patience` milliseconds. */
  ended(patience: number): void {
    this.#ended = true;
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => this.#controller.abort(), patience);
  }

  /** The end signal has arrived: a connection that breaks now has nothing more to lose. */
  get over(): boolean {
    return this.#ended;
  }

  /** Ends the exchange with an error. The first one counts. */
  fail(error: BackendError): void {
    this.#failure ??= error;
    this.#controller.abort(error);
  }

  /** What a thrown value means here: stopped by the caller, the failure that is known already, or something new. */
  verdict(error: unknown): Error {
    if (this.#stop.aborted) return new Fault("interrupted", "the request was cancelled", { cause: error });
    if (this.#failure) return this.#failure;
    if (error instanceof BackendError) return error;
    if (error instanceof Fault) return new BackendError(error, { retryable: false });
    return broken(this.backend, error instanceof Error ? error.message : String(error), error);
  }

  /** Lets go of timers and socket. */
  dispose(): void {
    clearTimeout(this.#timer);
    this.#stop.removeEventListener("abort", this.#onStop);
    this.#controller.abort();
  }

  #arm(limit: number): void {
    clearTimeout(this.#timer);
    if (limit === 0) return;
    const silence = `${this.backend}: no answer for ${limit / 1000} s`;
    this.#timer = setTimeout(
      () => this.fail(new BackendError(new Fault("timeout", silence), { retryable: true })),
      limit,
    );
  }
}

/**
 * `fetch` for one exchange. A refusal, also one in the guise of a 200, becomes the exchange's failure, and so does whatever breaks the
 * body. A body that breaks simply ends for its reader, so that nothing that had arrived is lost: ask `failure` afterwards.
 * @param wire how a stream is told from an error in disguise, and what of its bytes the library shall see; left out, a JSON body is
 * expected and passed on
 */
export function watchedFetch(
  exchange: Exchange,
  wire?: {
    streams(contentType: string): boolean;
    read(body: AsyncIterable<Uint8Array>): AsyncIterable<string>;
  },
): typeof fetch {
  const watched = async (input: string | URL | Request, init?: RequestInit): Promise<Response> => {
    const url = new URL(input instanceof Request ? input.url : input);
    const response = await open(exchange, url, input, init);
    const type = response.headers.get("content-type") ?? "";
    const { status, headers } = response;
    if (!response.ok || /html/.test(type) || wire?.streams(type) === false)
      throw await refused(exchange, url, response);
    if (!wire || !response.body) return response;
    return new Response(stream(exchange, wire.read(response.body)), { status, headers });
  };
  return watched as typeof fetch;
}

async function open(exchange: Exchange, url: URL, input: string | URL | Request, init?: RequestInit) {
  const half = exchange.limits.connect / 2;
  let answered = false;
  // The time to connect is not told by fetch, and headers may come late from a host that is well. So: no headers at half time, and a
  // second connection has the other half.
  const probe = setTimeout(async () => {
    if ((await takesConnections(url, half)) || answered) return;
    const limit = `${exchange.backend}: cannot reach ${url.origin}: no connection within ${(2 * half) / 1000} s`;
    exchange.fail(new BackendError(new Fault("timeout", limit), { retryable: true }));
  }, half);
  if (half === 0 || proxied()) clearTimeout(probe);
  try {
    const signal = init?.signal ? AbortSignal.any([init.signal, exchange.signal]) : exchange.signal;
    // Bun's own limit would cut streams that this exchange still waits for.
    return await fetch(input, { ...init, signal, timeout: false } as RequestInit);
  } catch (error) {
    exchange.fail(networkError(exchange.backend, url, error));
    throw error;
  } finally {
    answered = true;
    clearTimeout(probe);
  }
}

/** False only if the time ran out: a refused connection is for fetch to tell. */
function takesConnections(url: URL, limit: number): Promise<boolean> {
  const port = Number(url.port) || (url.protocol === "https:" ? 443 : 80);
  return new Promise((resolve) => {
    const socket = connect({ host: url.hostname.replace(/^\[|\]$/g, ""), port });
    const timer = setTimeout(() => done(false), limit);
    const done = (reached: boolean) => {
      clearTimeout(timer);
      socket.destroy();
      resolve(reached);
    };
    socket.once("connect", () => done(true)).on("error", () => done(true));
  });
}

/** Behind a proxy the host need not be reachable from here. */
const proxied = (): boolean =>
  Boolean(
    process.env.HTTPS_PROXY ?? process.env.https_proxy ?? process.env.HTTP_PROXY ?? process.env.http_proxy,
  );

/** More of a refusal than this (bytes) is not read. */
const maxRefusal = 64 * 1024;

async function refused(exchange: Exchange, url: URL, response: Response): Promise<BackendError> {
  const { backend, secret } = exchange;
  const { status, headers } = response;
  const body = await beginning(response);
  const error =
    response.ok && !/^\s*\{\s*"error"/.test(body)
      ? notStreaming(backend, url, headers.get("content-type"))
      : providerError({ backend, status, headers, body, secret });
  exchange.fail(error);
  return exchange.failure ?? error;
}

async function beginning(response: Response): Promise<string> {
  const decoder = new TextDecoder();
  let text = "";
  try {
    for await (const chunk of response.body ?? []) {
      text += decoder.decode(chunk, { stream: true });
      if (text.length > maxRefusal) break;
    }
  } catch {
    // What has come of it, and the status, say enough.
  }
  return text;
}

/** Success, but no stream: a page of some other service most likely. */
function notStreaming(backend: string, url: URL, type: string | null): BackendError {
  const what = `${url.origin}${url.pathname} answered with ${type ?? "something"} instead of a stream: is the URL right?`;
  return new BackendError(new Fault("invalid", `${backend}: ${what}`), { retryable: false });
}

function networkError(backend: string, url: URL, error: unknown): BackendError {
  const { code = "", message = String(error) } = error as { code?: string; message?: string };
  const what = networkWords[code] ?? message.replace(/\. For more information.*$/, "");
  const fault = new Fault("unavailable", `${backend}: cannot reach ${url.origin}: ${what}`, { cause: error });
  // A certificate does not mend itself.
  return new BackendError(fault, { retryable: !/CERT|TLS|SSL|SIGNATURE/.test(code) });
}

const networkWords: Record<string, string> = {
  ECONNREFUSED: "connection refused",
  ECONNRESET: "the connection was closed before an answer came",
  ENOTFOUND: "no such host",
  EAI_AGAIN: "the name server does not answer",
  ETIMEDOUT: "no connection in time",
  EHOSTUNREACH: "no route to the host",
  ENETUNREACH: "the network is unreachable",
};

function stream(exchange: Exchange, texts: AsyncIterable<string>): ReadableStream<Uint8Array> {
  const encoder = new TextEncoder();
  const iterator = texts[Symbol.asyncIterator]();
  return new ReadableStream<Uint8Array>({
    async pull(controller) {
      try {
        const { done, value } = await iterator.next();
        if (!done) return controller.enqueue(encoder.encode(value));
      } catch (error) {
        if (error instanceof BackendError) exchange.fail(error);
        else if (!exchange.over) exchange.fail(broken(exchange.backend, "the connection broke", error));
      }
      controller.close();
    },
    // Not by the iterator: it stands in line behind a read that only this can end.
    cancel: () => exchange.dispose(),
  });
}
