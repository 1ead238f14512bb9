/** What this program is, as its build says. */
import { version } from "../../package.json" with { type: "json" };

/** Put in by build.ts; absent when the sources run as they are. */
declare const OLLIE_BUILD: Build | undefined;

interface Build {
  /** As package.json has it. */
  version: string;
  /** An abbreviated hash, with `-dirty` behind it, or "unknown". */
  commit: string;
  /** The machine it was built for: `linux-x64`, `linux-arm64`, `linux-x64-musl`. */
  target: string;
  /** Base64 of the Ed25519 key (32 bytes) whose owner signs the programs that may be sent to other hosts; absent = nobody does. */
  publisher?: string;
}

/** True in a compiled program, where `data/` is embedded and `process.execPath` is the program itself. */
export const compiled = typeof OLLIE_BUILD !== "undefined";

export const build: Build =
  typeof OLLIE_BUILD === "undefined"
    ? { version, commit: "unknown", target: `${process.platform}-${process.arch}` }
    : OLLIE_BUILD;
