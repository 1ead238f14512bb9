/** What a provider's refusal means: its own words, whether the same request may be sent again, and when. */
import { Fault, type FaultKind } from "../fault.ts";
import { BackendError } from "./backend.ts";

export interface Refusal {
  /** The backend's label, which begins the message. */
  backend: string;
  /** HTTP status; undefined where a stream that had begun well brings an error without a code. */
  status?: number;
  headers?: Headers;
  /** The body as it came: JSON text, plain text, HTML, or an object that is parsed already. */
  body: unknown;
  /** Never shown, even if the provider repeats it in its message. */
  secret?: string;
}

/** At most this many characters of a provider's words are shown. */
const maxWords = 600;

/** A refusal as an error. An error object inside a stream (HTTP 200) gets its status from its `code` or `type`. */
export function providerError(refusal: Refusal): BackendError {
  const { backend, headers } = refusal;
  const said = parseBody(refusal.body);
  const status =
    refusal.status === undefined || refusal.status < 400
      ? (said.status ?? statusOfType(said.type))
      : refusal.status;
  let words = said.words || (status ? (statusTexts[status] ?? "") : "an error without a message");
  if (refusal.secret) words = words.replaceAll(refusal.secret, "…");
  if (words.length > maxWords) words = `${words.slice(0, maxWords)}…`;
  const retryAfter = headers && parseRetryAfter(headers);
  const overflow = isOverflow(status, said);
  const retryable = !overflow && isRetryable(status, said, headers, retryAfter);
  const suffix = status ? (words ? ` (HTTP ${status})` : `HTTP ${status}`) : "";
  return new BackendError(new Fault(kindOf(status), `${backend}: ${words}${suffix}`), {
    status,
    retryable,
    ...(retryAfter !== undefined && { retryAfter }),
    ...(overflow && { overflow }),
  });
}

interface Said {
  words: string;
  /** `error.type` and `error.code`, joined. */
  type: string;
  /** A numeric `error.code` that is an HTTP status. */
  status?: number;
}

function parseBody(body: unknown): Said {
  let value = body;
  if (typeof body === "string") {
    try {
      value = JSON.parse(body);
    } catch {
      return { words: plainWords(body), type: "" };
    }
  }
  if (!isRecord(value)) return { words: typeof value === "string" ? value : "", type: "" };
  const error = isRecord(value.error) ? value.error : value;
  const code = Number(error.code ?? error.status);
  return {
    words: wordsOf(value, error),
    type: [error.type, error.code].filter((part) => typeof part === "string").join(" "),
    ...(code >= 400 && code < 600 && { status: code }),
  };
}

/** OpenAI and its like say `error.message`, Ollama `error` itself, FastAPI servers `detail`. */
function wordsOf(value: Record<string, unknown>, error: Record<string, unknown>): string {
  if (typeof value.error === "string") return value.error;
  const message = error.message ?? error.detail ?? value.message;
  const words = typeof message === "string" ? message : message === undefined ? "" : JSON.stringify(message);
  // A gateway's "Provider returned error" helps nobody; what the provider said is in `metadata.raw`.
  const raw = isRecord(error.metadata) ? error.metadata.raw : undefined;
  if (raw === undefined || raw === null || raw === "") return words;
  return `${words}: ${typeof raw === "string" ? raw : JSON.stringify(raw)}`;
}

/** Proxies answer with HTML pages: their title says enough. */
function plainWords(text: string): string {
  const trimmed = text.trim();
  if (!trimmed.startsWith("<")) return trimmed;
  return /<title[^>]*>([^<]*)/i.exec(trimmed)?.[1]?.trim() ?? "";
}

const statusTexts: Record<number, string> = {
  400: "bad request",
  401: "not authorised: is the key right?",
  402: "payment required",
  403: "forbidden",
  404: "not found: is the URL right?",
  408: "request timeout",
  413: "request too large",
  429: "too many requests",
  500: "internal server error",
  502: "bad gateway",
  503: "service unavailable",
  504: "gateway timeout",
  529: "overloaded",
};

function statusOfType(type: string): number | undefined {
  if (/overloaded/i.test(type)) return 529;
  if (/rate_?limit|quota/i.test(type)) return 429;
  if (/server_error|api_error|internal/i.test(type)) return 500;
  if (/timeout/i.test(type)) return 408;
  if (/authentication/i.test(type)) return 401;
  if (/invalid_request|bad_?request|context_length|exceed_context/i.test(type)) return 400;
  return undefined;
}

/** Statuses after which the same request may succeed; a stream's error without any code is a server's trouble and counts too. */
function isRetryable(
  status: number | undefined,
  said: Said,
  headers?: Headers,
  retryAfter?: number,
): boolean {
  if (isQuota(said, retryAfter)) return false;
  const wish = headers?.get("x-should-retry");
  if (wish === "true") return true;
  if (wish === "false") return false;
  if (status === undefined) return true;
  return status === 408 || status === 409 || status === 425 || status === 429 || status >= 500;
}

/** A used-up allowance is told as 429 like a rate limit, but waiting does not help. */
function isQuota(said: Said, retryAfter?: number): boolean {
  if (/insufficient_quota|billing_(hard_limit|not_active)|credit_balance/i.test(said.type)) return true;
  return (
    retryAfter === undefined && /exceeded your current quota|credit balance is too low/i.test(said.words)
  );
}

/** Ways in which providers say that a prompt does not fit, gathered from their error texts. */
const overflowTexts = [
  /context_length_exceeded|exceed_context_size/i,
  /(maximum|max\.?|model'?s?|available|supported|allowed) (context|prompt|input)\b[^.]*\b(length|size|window|limit|tokens?)/i,
  /context (length|window|size|limit)[^.]*\b(exceed|limit|maximum|overflow|is only|too (long|large|small))/i,
  /exceed[^.]*\b(context|input|prompt)[ _-]?(length|window|size|limit|tokens?)/i,
  /(prompt|input|request|message)s?( is| are|'s)? too (long|large)\b/i,
  /reduce the length of (the|your) (messages|prompt|input)/i,
  /(input|prompt) (token count|tokens|length)[^.]*exceed/i,
  /too many (input )?tokens\b/i,
  /(greater|more|longer|larger) than the (model's )?(maximum )?context/i,
];

/** A 400 that says nothing is not an overflow, and a limit per minute is a rate limit whatever it counts. */
function isOverflow(status: number | undefined, said: Said): boolean {
  const text = `${said.type} ${said.words}`;
  if (/per (min|hour|day|second)|\b[TR]P[MD]\b|rate.?limit/i.test(text)) return false;
  if (status === 413) return true;
  if (status !== undefined && ![400, 422, 500].includes(status)) return false;
  return overflowTexts.some((pattern) => pattern.test(text));
}

function kindOf(status: number | undefined): FaultKind {
  if (status === 401 || status === 402 || status === 403) return "denied";
  if (status === 404) return "missing";
  if (status === 408 || status === 504) return "timeout";
  if (status === 429) return "busy";
  if (status !== undefined && status < 500) return "invalid";
  return "unavailable";
}

/**
 * When the provider wants to be asked again, in milliseconds from now: `retry-after-ms` (milliseconds), else `retry-after` (seconds or
 * an HTTP date, RFC 9110 10.2.3). Undefined where neither can be read.
 */
export function parseRetryAfter(headers: Headers, now = Date.now()): number | undefined {
  const milliseconds = number(headers.get("retry-after-ms"));
  if (milliseconds !== undefined) return Math.max(0, milliseconds);
  const text = headers.get("retry-after");
  const seconds = number(text);
  if (seconds !== undefined) return Math.max(0, seconds * 1000);
  const date = text ? Date.parse(text) : Number.NaN;
  return Number.isNaN(date) ? undefined : Math.max(0, date - now);
}

function number(text: string | null): number | undefined {
  if (text === null || text.trim() === "") return undefined;
  const value = Number(text);
  return Number.isFinite(value) ? value : undefined;
}

export function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
