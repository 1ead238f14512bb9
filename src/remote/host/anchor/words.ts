/** What a trust anchor is asked: the words of its command line, or of what a client has sent to a forced command. */
import { coded } from "../../protocol/errors.ts";

export interface AnchorCall {
  step: "check" | "install" | "launch";
  digest: string;
  /** `-` where a person asks, who needs none. */
  nonce: string;
  /**
   * Of install: how the program is packed, its length so, and the length of signature and manifest before it. Without a length it goes on to the end
   * of the input.
   */
  upload?: { codec: "zstd" | "gzip" | "none"; length?: number; signed: number };
  /** Of launch: options of serve. */
  serve: { root?: string; policy?: string };
}

/** The grammar, for errors. */
const grammar =
  "check HASH [NONCE], install HASH [NONCE CODEC LENGTH SIGNED], or launch HASH [NONCE] [--root DIR] [--policy FILE]";
const lengthLimit = 512 * 1024 * 1024;
const signedLimit = 4 * 1024 * 1024;

/** @throws CodedFault `boot.words` */
export function parseCall(words: readonly string[]): AnchorCall {
  const [step, digest = "", ...more] = words;
  if (step !== "check" && step !== "install" && step !== "launch")
    throw wrong(`${step ?? "nothing"} is no step`);
  if (!/^[0-9a-f]{64}$/.test(digest)) throw wrong("HASH is no SHA-256");
  const named = more.length > 0 && !more[0]!.startsWith("--");
  const [nonce = "-", rest] = named ? [more[0], more.slice(1)] : ["-", more];
  if (named && !/^[0-9a-f]{8,64}$/.test(nonce))
    throw wrong("NONCE is no hexadecimal number of 8 to 64 digits");
  const call = { step, digest, nonce, serve: {} };
  if (step === "install") return { ...call, step, upload: parseUpload(rest) };
  if (step === "launch") return { ...call, step, serve: parseOptions(rest) };
  if (rest.length > 0) throw wrong("check takes nothing more");
  return { ...call, step };
}

function parseUpload(words: readonly string[]): AnchorCall["upload"] {
  if (words.length === 0) return { codec: "none", signed: 0 };
  const [codec, length = "", signed = "", more] = words;
  if (codec !== "zstd" && codec !== "gzip" && codec !== "none") throw wrong("CODEC is zstd, gzip or none");
  if (more !== undefined) throw wrong("install takes nothing more");
  return {
    codec,
    length: count(length, "LENGTH", lengthLimit),
    signed: count(signed, "SIGNED", signedLimit),
  };
}

function count(word: string, name: string, most: number): number {
  if (!/^\d{1,10}$/.test(word) || Number(word) > most)
    throw wrong(`${name} is a number of at most ${most} bytes`);
  return Number(word);
}

function parseOptions(words: readonly string[]): { root?: string; policy?: string } {
  const options: { root?: string; policy?: string } = {};
  for (let at = 0; at < words.length; at += 2) {
    const [name, value] = [words[at], words[at + 1]];
    if (name !== "--root" && name !== "--policy") throw wrong(`${name} is no option`);
    if (!value?.startsWith("/")) throw wrong(`${name} takes an absolute path`);
    const key = name === "--root" ? "root" : "policy";
    if (options[key] !== undefined) throw wrong(`${name} is there twice`);
    options[key] = value;
  }
  return options;
}

/**
 * SSH_ORIGINAL_COMMAND as words: what stands between spaces, or between single quotes. It is never given to a shell, and whatever would mean
 * something to one is refused.
 * @throws CodedFault `boot.words`
 */
export function splitCommand(command: string): string[] {
  const words: string[] = [];
  for (let rest = command.trim(); rest !== ""; ) {
    const [whole, quoted, plain] = /^(?:'([^'\0\n]*)'|([\w@%+=:,./-]+))(?= |$)/.exec(rest) ?? [];
    if (whole === undefined) throw wrong(`${JSON.stringify(rest.slice(0, 40))} cannot be read`);
    words.push(quoted ?? plain!);
    rest = rest.slice(whole.length).trimStart();
  }
  return words;
}

function wrong(why: string): Error {
  return coded("boot.words", `${why}: the trust anchor takes ${grammar}`);
}
