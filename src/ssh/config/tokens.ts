/** What the values of ssh_config(5) hold in the place of something: `%h`, `${HOME}`, `~/`. */
import { join } from "node:path";
import { account } from "./account.ts";

/** Tokens that are not among the values stay as they are. */
export function expandTokens(text: string, values: Record<string, string>): string {
  return text.replace(/%(.)/g, (token, letter: string) => (letter === "%" ? "%" : (values[letter] ?? token)));
}

/** A path: tokens, variables of the environment, the home of the user. */
export function expandPath(text: string, values: Record<string, string>): string {
  const path = expandTokens(text, values).replace(
    /\$\{(\w+)\}/g,
    (name, variable: string) => process.env[variable] ?? name,
  );
  return path === "~" || path.startsWith("~/") ? join(account().home, path.slice(1)) : path;
}

/** Words of a value; those with blanks are in double quotes. */
export function words(value: string): string[] {
  return [...value.matchAll(/"([^"]*)"|(\S+)/g)].map(([, quoted, plain]) => quoted ?? plain!);
}
