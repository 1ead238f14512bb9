/** What went wrong, as a value: a kind that code can branch on, a sentence for the user, and the cause. */

export type FaultKind =
  | "invalid" // the request makes no sense as written
  | "missing" // what it names does not exist
  | "exists" // what it would create exists already
  | "denied" // not allowed
  | "busy" // not now
  | "interrupted" // cancelled by the one who asked
  | "timeout"
  | "unavailable" // a backend, host or file system that does not answer
  | "full" // no space left
  | "io"; // anything else the system refused

/**
 * An error meant for a person. `message` says what was wrong and what would be right, in one sentence without a final period;
 * it reaches the user as an Rerror, an `[[[error]]]` block or one line on stderr.
 */
export class Fault extends Error {
  override readonly name = "Fault";
  constructor(
    readonly kind: FaultKind,
    message: string,
    options?: { cause?: unknown },
  ) {
    super(message, options);
  }
}

/**
 * A Fault of the way to another host, with the code that the protocol has for it (`ssh.auth`, `boot.no_space`, `op.unknown`). Such a one is
 * never the result of a tool: it pauses or ends the turn.
 */
export class CodedFault extends Fault {
  constructor(
    kind: FaultKind,
    readonly code: string,
    message: string,
    /** `retry`: it may work by itself later. `hint`: what to do, a sentence. */
    readonly more: { retry?: boolean; hint?: string } = {},
    options?: { cause?: unknown },
  ) {
    super(kind, more.hint ? `${message}; ${more.hint}` : message, options);
  }
}

const errnoKinds: Record<string, FaultKind> = {
  ENOENT: "missing",
  EEXIST: "exists",
  EACCES: "denied",
  EPERM: "denied",
  EBUSY: "busy",
  ENOSPC: "full",
  EDQUOT: "full",
  ETIMEDOUT: "timeout",
  ECONNREFUSED: "unavailable",
  ECONNRESET: "unavailable",
};

/** Any thrown value as a Fault: a Fault stays what it is, a system error gets the kind of its errno. */
export function toFault(error: unknown, what?: string): Fault {
  if (error instanceof Fault) return error;
  const code = (error as { code?: unknown } | null)?.code;
  const kind = (typeof code === "string" && errnoKinds[code]) || "io";
  const text = error instanceof Error ? error.message : String(error);
  return new Fault(kind, what ? `${what}: ${text}` : text, { cause: error });
}
