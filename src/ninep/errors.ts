import { type FaultKind, toFault } from "../fault.ts";

/**
 * Error texts. A client has nothing but the string: the Linux kernel compares it whole, plan9port's 9pfuse and our own mount look
 * for it inside. So every error starts with one of these phrases, and what else there is to say follows after ": ".
 */
export const phrase = {
  permission: "permission denied",
  notExist: "file does not exist",
  exists: "file already exists",
  notDir: "not a directory",
  isDir: "Is a directory",
  invalid: "Invalid argument",
  interrupted: "Interrupted system call",
  io: "i/o error",
  busy: "Device or resource busy",
  readOnly: "Read-only file system",
  noSys: "Function not implemented",
  badFd: "Bad file descriptor",
  again: "Resource temporarily unavailable",
  timeout: "Connection timed out",
  pipe: "Broken pipe",
  proto: "Protocol error",
  noSpace: "No space left on device",
} as const;

export type Phrase = (typeof phrase)[keyof typeof phrase];

/** ERRMAX of Plan 9: more would overrun the buffers of some clients. */
const maxBytes = 128;

/** An error as it goes over the wire. */
export class NineError extends Error {
  override readonly name = "NineError";
  constructor(standard: Phrase | (string & {}), detail?: string, options?: { cause?: unknown }) {
    super(clip(detail ? `${standard}: ${detail}` : standard), options);
  }
}

/** Cuts to 128 bytes without splitting a UTF-8 sequence. */
function clip(text: string): string {
  const bytes = new TextEncoder().encode(text);
  if (bytes.length <= maxBytes) return text;
  return `${new TextDecoder().decode(bytes.subarray(0, maxBytes - 3)).replace(/\uFFFD$/, "")}…`;
}

const faultPhrases: Record<FaultKind, Phrase> = {
  invalid: phrase.invalid,
  missing: phrase.notExist,
  exists: phrase.exists,
  denied: phrase.permission,
  busy: phrase.busy,
  interrupted: phrase.interrupted,
  timeout: phrase.timeout,
  unavailable: phrase.again,
  full: phrase.noSpace,
  io: phrase.io,
};

/** Anything that a tree may throw as an error for the wire: a NineError as it is, a Fault by its kind, a system error by its code. */
export function toNineError(error: unknown): NineError {
  if (error instanceof NineError) return error;
  if (error instanceof Error && error.name === "AbortError") return new NineError(phrase.interrupted);
  const fault = toFault(error);
  // The system's own name for a full disk says what the phrase says.
  const detail = fault.message.replace(/(: )?\bENOSPC: no space left on device(, \w+)?/, "");
  return new NineError(faultPhrases[fault.kind], detail, { cause: error });
}
