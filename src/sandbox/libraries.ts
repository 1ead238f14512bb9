/** The files without which a program cannot be loaded: its interpreter and libraries, found as `ld.so(8)` finds them. */
import { readFileSync, realpathSync } from "node:fs";
import { dirname, join } from "node:path";
import { Fault, toFault } from "../fault.ts";
import { type Elf, readElf } from "./elf.ts";

export interface Needed {
  /** To be read and executed; links resolved. */
  files: string[];
  /** To be read, so that the loader finds the others. */
  indexes: string[];
}

const cache = "/etc/ld.so.cache";
/** As `execve(2)`: an interpreter may itself be a script, four times over. */
const scriptDepth = 4;
const tuples: Record<number, string> = { 62: "x86_64-linux-gnu", 183: "aarch64-linux-gnu" };

/**
 * @param libraryPath folders of LD_LIBRARY_PATH as the program will have it
 * @throws Fault "missing" that names the library and who needs it, "invalid" for a program that no loader takes
 */
export function neededFiles(program: string, libraryPath: readonly string[] = []): Needed {
  const files = new Set<string>();
  let path = program;
  for (let depth = 0; ; depth++) {
    const interpreter = interpreterOf(path);
    if (interpreter === undefined) break;
    if (depth === scriptDepth)
      throw new Fault("invalid", `${program}: too many interpreters that are scripts themselves`);
    files.add(real(interpreter, path));
    path = interpreter;
  }
  const search = new Search(libraryPath);
  for (const file of search.from(path)) files.add(file);
  return { files: [...files], indexes: search.usedCache ? [cache] : [] };
}

/** Of a script: what its first line names. */
function interpreterOf(path: string): string | undefined {
  const head = content(path).toString("latin1", 0, 256);
  return /^#![ \t]*([^\s]+)/.exec(head)?.[1];
}

interface Loaded {
  path: string;
  elf: Elf;
  /** Who asked for it. */
  by?: Loaded;
}

class Search {
  usedCache = false;
  readonly #known = new Map<string, string[]>();

  constructor(private readonly libraryPath: readonly string[]) {
    for (const path of cachedPaths()) {
      const name = path.slice(path.lastIndexOf("/") + 1);
      this.#known.set(name, [...(this.#known.get(name) ?? []), path]);
    }
  }

  /** Everything that comes into the process with this program, but the program itself. */
  from(path: string): string[] {
    const elf = readElf(path);
    if (!elf) throw new Fault("invalid", `${path} is neither a script nor a 64-bit ELF program`);
    const found = new Set<string>();
    if (elf.interpreter !== undefined) found.add(real(elf.interpreter, path));
    const waiting: Loaded[] = [{ path: real(path, path), elf }];
    for (let object = waiting.shift(); object; object = waiting.shift())
      for (const name of object.elf.needed)
        for (const file of this.#find(name, object)) {
          if (found.has(file)) continue;
          found.add(file);
          waiting.push({ path: file, elf: readElf(file)!, by: object });
        }
    return [...found];
  }

  /** Of several in the cache, which are made for different processors, the loader takes one that is not ours to foretell. */
  #find(name: string, object: Loaded): string[] {
    if (name.includes("/")) return [real(name, object.path)];
    const fits = (path: string) => usable(path, object.elf.machine);
    for (const folder of [...rpaths(object), ...this.libraryPath, ...runpaths(object)]) {
      const found = fits(join(folder, name));
      if (found) return [found];
    }
    const cached = (this.#known.get(name) ?? []).map(fits).filter((path) => path !== undefined);
    if (cached.length > 0) {
      this.usedCache = true;
      return [...new Set(cached)];
    }
    const usual = usualFolders(object.elf.machine).map((folder) => fits(join(folder, name)));
    const found = usual.find((path) => path !== undefined);
    if (found) return [found];
    throw new Fault("missing", `the library ${name}, which ${object.path} needs, is not found`);
  }
}

/** DT_RPATH counts for what the libraries ask for as well, and not at all beside a DT_RUNPATH. */
function rpaths(object: Loaded): string[] {
  if (object.elf.runpath.length > 0) return [];
  const folders: string[] = [];
  for (let asker: Loaded | undefined = object; asker; asker = asker.by)
    if (asker.elf.runpath.length === 0) folders.push(...expanded(asker.elf.rpath, asker));
  return folders;
}

function runpaths(object: Loaded): string[] {
  return expanded(object.elf.runpath, object);
}

function expanded(folders: readonly string[], { path, elf }: Loaded): string[] {
  const libs = [`lib/${tuples[elf.machine] ?? ""}`, "lib64", "lib"];
  return folders
    .map((folder) => folder.replace(/\$(?:ORIGIN\b|\{ORIGIN\})/g, dirname(path)))
    .flatMap((folder) => {
      const place = /\$(?:LIB\b|\{LIB\})/g;
      return place.test(folder) ? libs.map((lib) => folder.replace(place, lib)) : [folder];
    });
}

function usualFolders(machine: number): string[] {
  const tuple = tuples[machine];
  const parts = [...(tuple ? [`lib/${tuple}`] : []), "lib64", "lib"];
  // musl's loader looks into /usr/local/lib as well.
  return [...parts.map((part) => `/${part}`), ...parts.map((part) => `/usr/${part}`), "/usr/local/lib"];
}

/** The path, links resolved, if there is a library for this machine. */
function usable(path: string, machine: number): string | undefined {
  try {
    return readElf(path)?.machine === machine ? realpathSync(path) : undefined;
  } catch {
    return undefined;
  }
}

function real(path: string, by: string): string {
  try {
    return realpathSync(path);
  } catch (error) {
    throw toFault(error, `${path}, which ${by} needs`);
  }
}

function content(path: string): Buffer {
  try {
    return readFileSync(path);
  } catch (error) {
    throw toFault(error, `cannot read ${path}`);
  }
}

const magic = "glibc-ld.so.cache1.1";
const headerSize = 48;
const entrySize = 24;

/** Paths in the loader's cache, in the format that glibc has written since 2.2; none where there is no such file. */
function cachedPaths(): string[] {
  let file: Buffer;
  try {
    file = readFileSync(cache);
  } catch {
    return [];
  }
  // Older versions put a table of their own before it.
  const start = file.indexOf(magic);
  if (start < 0) return [];
  const table = file.subarray(start);
  const paths: string[] = [];
  for (let index = 0; index < table.readUInt32LE(magic.length); index++) {
    const at = headerSize + index * entrySize + 8;
    if (at + 4 > table.length) break;
    const text = table.readUInt32LE(at);
    const end = table.indexOf(0, text);
    if (end > text) paths.push(table.toString("utf8", text, end));
  }
  return paths;
}
