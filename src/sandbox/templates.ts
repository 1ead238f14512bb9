/** `{NAME}` and `~` in the paths of configs. */

/** Values by name; undefined or empty = not set. */
export type Values = (name: string) => string | undefined;

/** Never put into a path: it would show up in errors and listings. */
const secret = /_(KEY|TOKEN|SECRET|PASSWORD)$/;

/** What a path with templates becomes, one path for each entry of a search path. */
export interface Expanded {
  paths: string[];
  /** A variable that is not set: the path then stands for nothing. */
  unset?: string;
}

/**
 * Replaces `{NAME}` anywhere, and `~` at the start by HOME. A variable whose name ends in PATH is a list with colons and gives a path
 * for each of its entries. What comes out of a variable is not looked through for templates again.
 */
export function expandTemplates(text: string, values: Values): Expanded {
  const source = text === "~" || text.startsWith("~/") ? `{HOME}${text.slice(1)}` : text;
  let paths = [""];
  // The odd parts are names.
  for (const [i, part] of source.split(/\{(\w+)\}/).entries()) {
    if (i % 2 === 0) {
      paths = paths.map((path) => path + part);
      continue;
    }
    const value = secret.test(part) ? undefined : values(part);
    const entries = part.endsWith("PATH") ? (value ?? "").split(":").filter(Boolean) : [value ?? ""];
    if (!entries[0]) return { paths: [], unset: part };
    paths = paths.flatMap((path) => entries.map((entry) => path + entry));
  }
  return { paths };
}
