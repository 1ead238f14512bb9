/** What this program is, as its build says. */
import packageJson from "../../package.json" with { type: "json" };

/** Put in by build.ts; absent when the sources run as they are. */
declare const OLLIE_BUILD: { version: string; commit: string } | undefined;

/** True in a compiled program, where `data/` is embedded and `process.execPath` is the program itself. */
export const compiled = typeof OLLIE_BUILD !== "undefined";

/** `version` is that of package.json; `commit` an abbreviated hash, with `-dirty` behind it, or "unknown". */
export const build: { version: string; commit: string } =
  typeof OLLIE_BUILD === "undefined" ? { version: packageJson.version, commit: "unknown" } : OLLIE_BUILD;
