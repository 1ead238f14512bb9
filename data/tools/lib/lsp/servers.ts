/** Which language server is for which file: `lsp.json` beside the tools, and over it the file that OLLIE_LSP names. */
import { existsSync, readFileSync } from "node:fs";
import { basename, dirname, extname, join } from "node:path";

export interface ServerSpec {
  name: string;
  command: string[];
  /** The protocol's name of the language, by extension (`.go`) or by the name of the file. */
  languages: Record<string, string>;
  /** Files that mark the root of a project, the most telling first. */
  roots: string[];
  /** For the protocol's `initializationOptions`. */
  options?: unknown;
  /** What `workspace/configuration` is answered with, by section. */
  settings?: Record<string, unknown>;
  /** Seconds in which it must have answered. */
  timeout: number;
  /** How to get it. */
  install: string;
}

type Table = Record<string, Partial<Omit<ServerSpec, "name">> | null>;

const defaults = { command: [], languages: {}, roots: [], timeout: 60, install: "" };

const shipped = join(import.meta.dir, "../../lsp.json");

/** All of them; the user's own come first. @throws Error that names the file and what is wrong with it */
export function loadServers(): ServerSpec[] {
  const own = process.env.OLLIE_LSP ? readTable(process.env.OLLIE_LSP) : {};
  const base = readTable(shipped);
  return [...Object.keys(own), ...Object.keys(base).filter((name) => !(name in own))].flatMap((name) => {
    if (own[name] === null) return [];
    return [check({ ...defaults, ...base[name], ...own[name], name })];
  });
}

function readTable(file: string): Table {
  try {
    const table = JSON.parse(readFileSync(file, "utf8"));
    if (typeof table === "object" && table !== null && !Array.isArray(table)) return table;
    throw new Error("it is no JSON object");
  } catch (error) {
    throw new Error(`the table of language servers ${file} cannot be used: ${(error as Error).message}`, {
      cause: error,
    });
  }
}

function check(spec: ServerSpec): ServerSpec {
  const wrong = (what: string) => new Error(`the table of language servers: ${spec.name}.${what}`);
  const isText = (value: unknown) => typeof value === "string";
  const isList = (value: unknown) => Array.isArray(value) && value.every(isText);
  if (!isList(spec.command) || spec.command.length === 0)
    throw wrong("command must be a list of words, the first of them a program");
  if (!isList(spec.roots)) throw wrong("roots must be a list of file names");
  if (typeof spec.languages !== "object" || !Object.values(spec.languages ?? {}).every(isText))
    throw wrong('languages must be an object like {".go": "go"}');
  if (!(spec.timeout > 0)) throw wrong("timeout must be a number of seconds");
  return fill(spec) as ServerSpec;
}

/** Puts values in place of `{TMPDIR}`, `{HOME}` and any other variable. */
function fill(value: unknown): unknown {
  if (typeof value === "string")
    return value.replace(/\{([A-Z][A-Z0-9_]*)\}/g, (whole, name) => process.env[name] ?? whole);
  if (Array.isArray(value)) return value.map(fill);
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([key, inner]) => [key, fill(inner)]));
}

export function languageOf(spec: ServerSpec, path: string): string | undefined {
  return spec.languages[basename(path)] ?? spec.languages[extname(path).toLowerCase()];
}

export function isInstalled({ command }: ServerSpec): boolean {
  return Bun.which(command[0]!) !== null;
}

/** The first one for the file that is on PATH. @throws Error that says what to install, or where to name a server */
export function serverFor(path: string): ServerSpec {
  const fitting = loadServers().filter((spec) => languageOf(spec, path));
  const found = fitting.find(isInstalled);
  if (found) return found;
  const what = extname(path) || basename(path);
  if (fitting.length === 0)
    throw new Error(
      `no language server is known for ${what} files; name one in a file like ${shipped} and its path in OLLIE_LSP`,
    );
  const programs = fitting.map(({ command }) => command[0]).join(" or ");
  const ways = fitting.map(({ install }) => install).filter(Boolean);
  throw new Error(
    `the language server for ${what} files is not on PATH: ${programs}${ways.length > 0 ? `. To install it: ${ways.join("; or ")}` : ""}`,
  );
}

/** The folder of the nearest marker above the file within its repository; without any the repository, else the working folder. */
export function rootOf(spec: ServerSpec, path: string, cwd: string): string {
  const folders = foldersOf(path, cwd);
  for (const marker of spec.roots) {
    const root = folders.find((folder) => existsSync(join(folder, marker)));
    if (root) return root;
  }
  const top = folders.at(-1)!;
  return top === cwd || existsSync(join(top, ".git")) ? top : folders[0]!;
}

/** From the file's own folder up to that of its repository; where there is none to the working folder, or all of them. */
function foldersOf(path: string, cwd: string): string[] {
  const folders: string[] = [];
  for (let folder = dirname(path); folders.at(-1) !== folder; folder = dirname(folder)) folders.push(folder);
  const repository = folders.findIndex((folder) => existsSync(join(folder, ".git")));
  const last = repository >= 0 ? repository : folders.indexOf(cwd);
  return last >= 0 ? folders.slice(0, last + 1) : folders;
}
