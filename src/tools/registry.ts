/** The tools of this host: the sidecars in the folders of `OLLIE_TOOLS_PATH`. */
import { accessSync, constants, readdirSync, readFileSync, type Stats, statSync } from "node:fs";
import { isAbsolute, join, normalize } from "node:path";
import { Fault, toFault } from "../fault.ts";
import { type Host, type Meta, parseMeta, type ResolvedMeta, resolve, thisHost } from "./meta.ts";
import type { Tool, ToolRegistry } from "./tool.ts";

/** Seconds that a call may take where nothing else is said. */
const defaultTimeout = 120;
/** Seconds without a call after which a service is ended, likewise. */
const defaultIdle = 600;
/** Milliseconds for which an answer is good: a file's change is noticed by the first question after that. */
const fresh = 1000;
const suffix = ".meta";
/** What every provider takes as a function's name. */
const validName = /^[a-zA-Z0-9_-]{1,64}$/;

/** What one sidecar came to, and what it depends on. */
interface Entry {
  /** Changes when the sidecar or the program does. */
  signature: string;
  meta?: Meta;
  program: string;
  tool?: Tool;
  problem?: string;
}

/**
 * @param path folders, separated by colons; of tools with the same name the first folder's counts, even if its sidecar is broken.
 *   Folders that do not exist (yet) are passed over.
 *
 * Costs nothing while nobody asks: files are looked at when a question comes, at most once a second, and read when they have changed.
 */
export function createRegistry(
  path: string,
  host: Host = thisHost,
  now: () => number = Date.now,
): ToolRegistry {
  const folders = path.split(":").filter((folder) => folder !== "");
  let entries = new Map<string, Entry>();
  let tools: Tool[] = [];
  let checked = Number.NEGATIVE_INFINITY;
  let closed = false;

  function refresh(): void {
    if (closed || now() - checked < fresh) return;
    checked = now();
    const found = new Map<string, Entry>();
    const seen = new Set<string>();
    for (const [folder, file] of sidecars(folders)) {
      const name = file.slice(0, -suffix.length);
      if (seen.has(name)) continue;
      seen.add(name);
      const place = join(folder, file);
      found.set(place, update(entries.get(place), folder, name, host));
    }
    entries = found;
    tools = [...entries.values()]
      .flatMap(({ tool }) => tool ?? [])
      .sort((a, b) => (a.name < b.name ? -1 : 1));
  }

  return {
    list() {
      refresh();
      return tools;
    },
    get(name) {
      refresh();
      const find = () => tools.find((tool) => tool.name === name);
      if (find()) return find();
      // Who names a tool that is not known has perhaps just put it there.
      checked = Number.NEGATIVE_INFINITY;
      refresh();
      return find();
    },
    problems() {
      refresh();
      return [...entries].flatMap(([file, { problem }]) => (problem ? [{ file, reason: problem }] : []));
    },
    spec: ({ name, description, schema }) => ({ name, description, schema }),
    close() {
      closed = true;
    },
  };
}

function* sidecars(folders: string[]): Generator<[folder: string, file: string]> {
  for (const folder of folders) {
    let names: string[] = [];
    try {
      names = readdirSync(folder);
    } catch {
      // not there (yet), or not ours to read: the tools of the other folders are still good
    }
    for (const name of names) if (name.endsWith(suffix)) yield [folder, name];
  }
}

/** The entry as it is if neither the sidecar nor the program has changed; variants are asked again each time. */
function update(before: Entry | undefined, folder: string, name: string, host: Host): Entry {
  const place = join(folder, name + suffix);
  const sign = (program: string) => `${stamp(place)} ${stamp(program)}`;
  if (before && before.signature === sign(before.program) && !before.meta?.variants) return before;
  const entry: Entry = { signature: "", program: join(folder, name) };
  try {
    entry.meta = parseMeta(readFileSync(place, "utf8"));
    const meta = resolve(entry.meta, host);
    if (meta) {
      entry.program = join(folder, meta.cmd ?? name);
      entry.tool = toTool(name, folder, meta);
    }
  } catch (error) {
    entry.problem = toFault(error).message;
  }
  entry.signature = sign(entry.program);
  return entry;
}

function stamp(path: string): string {
  try {
    const { ino, size, mtimeMs, ctimeMs }: Stats = statSync(path);
    return `${ino} ${size} ${mtimeMs} ${ctimeMs}`;
  } catch {
    return "missing";
  }
}

function toTool(name: string, folder: string, meta: ResolvedMeta): Tool {
  if (!validName.test(name)) {
    throw new Fault("invalid", "a tool's name is at most 64 letters, digits, _ and -");
  }
  if (!meta.description) throw new Fault("invalid", "description: it is missing; the model chooses by it");
  const readOnly = meta.readOnly ?? false;
  return {
    name,
    description: meta.description,
    documentation: meta.documentation ?? "",
    schema: meta.args ?? { type: "object", properties: {} },
    path: program(folder, meta.cmd ?? name),
    folder,
    tier: meta.tier ?? "cold",
    concurrency: meta.concurrency ?? (readOnly ? "read" : "write"),
    readOnly,
    elevated: meta.elevated ?? false,
    sudo: meta.sudo ?? false,
    timeout: meta.timeout ?? defaultTimeout,
    remote: meta.remote ?? true,
    ...(meta.service && { service: toService(folder, meta.service) }),
  };
}

/** Whether its program exists shows when it is started. */
function toService(folder: string, { cmd, idle, idleVariable }: NonNullable<ResolvedMeta["service"]>) {
  return {
    path: inside(folder, cmd, "service.cmd"),
    idle: idle ?? defaultIdle,
    ...(idleVariable && { idleVariable }),
  };
}

function inside(folder: string, cmd: string, key: string): string {
  if (isAbsolute(cmd) || normalize(cmd).startsWith("..")) {
    throw new Fault("invalid", `${key}: ${cmd} is not in the sidecar's folder`);
  }
  return join(folder, cmd);
}

function program(folder: string, cmd: string): string {
  const path = inside(folder, cmd, "cmd");
  try {
    if (!statSync(path).isFile()) throw new Fault("invalid", `cmd: ${path} is not a file`);
    accessSync(path, constants.X_OK);
  } catch (error) {
    const fault = toFault(error);
    if (fault.kind === "missing") throw new Fault("missing", `its program ${path} does not exist`);
    if (fault.kind === "denied") throw new Fault("denied", `its program ${path} is not executable`);
    throw fault;
  }
  return path;
}
