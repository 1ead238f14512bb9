/**
 * Puts the shipped files into the user's config folder and keeps them up to date, without ever taking something away that the user made.
 *
 * A manifest in the config folder remembers the hash of every file as it was installed. A file that still has that hash is the user's
 * only by place and may be replaced by a newer one; any other, and one that the user removed, is left as it is and reported.
 */
import { createHash } from "node:crypto";
import { chmodSync, lstatSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { z } from "zod";
import { type Fault, toFault } from "../fault.ts";
import { shippedData } from "./data.ts";

export interface InstallReport {
  /** New, or replaced because nobody had touched them. */
  written: string[];
  /** Left alone because the user changed or removed them. */
  kept: string[];
  /** No longer shipped, and nobody had touched them. */
  removed: string[];
}

const manifestSchema = z.object({ files: z.record(z.string(), z.string()) });
/** In the config folder. */
export const manifestName = ".installed.json";

interface Shipped {
  /** How the manifest and reports call it. */
  name: string;
  target: string;
  content: string;
  mode: number;
  /** Never replaced, whatever the user asks for. */
  personal: boolean;
}

/**
 * Installs or updates the shipped files: the env template, agents, prompts, tools and so on in `config`, and `o` in `bin`. One that
 * cannot be written keeps none of the others away.
 * @param force also replaces what the user changed, and brings back what the user removed; the user's file stays beside it as `NAME.bak`.
 *   The env file is never replaced.
 * @throws Fault that names the first file that could not be written
 */
export function installData(config: string, bin?: string, force = false): InstallReport {
  const report: InstallReport = { written: [], kept: [], removed: [] };
  const known = readManifest(config);
  const installed: Record<string, string> = {};
  let fault: Fault | undefined;
  for (const file of shippedFiles(config, bin)) {
    const before = known[file.name];
    const shipped = digest(file.content);
    const present = currentDigest(file.target);
    // Also where neither exists: it was never installed, and nothing is in its place.
    const untouched = present === before;
    installed[file.name] = shipped;
    if (present === shipped) continue;
    const wanted = untouched || (force && !file.personal);
    if (wanted) {
      try {
        if (!untouched && present !== undefined) renameSync(file.target, `${file.target}.bak`);
        write(file);
        report.written.push(file.name);
        continue;
      } catch (error) {
        fault ??= toFault(error, `cannot write ${file.target}`);
      }
    } else report.kept.push(file.name);
    // The old hash stays in the manifest, so that the file counts next time as it does now.
    if (before === undefined) delete installed[file.name];
    else installed[file.name] = before;
  }
  for (const [name, before] of Object.entries(known)) {
    const target = join(config, name);
    if (name in installed || name.startsWith("bin/") || currentDigest(target) !== before) continue;
    rmSync(target);
    report.removed.push(name);
  }
  if (JSON.stringify(installed) !== JSON.stringify(known)) writeManifest(config, installed);
  if (fault) throw fault;
  return report;
}

/** The shipped files in a fixed order. */
function shippedFiles(config: string, bin?: string): Shipped[] {
  // A file at the top of data/ is for the programs themselves, save the env template. So is the default sandbox: a copy would grow old.
  const data = shippedData().filter(
    ([name]) => name === "env" || (name.includes("/") && !name.startsWith("sandbox/")),
  );
  const shipped = data.map(([name, content]): Shipped => {
    const personal = name === "env";
    // What begins with an interpreter line is a program; the env file will hold keys.
    const mode = content.startsWith("#!") ? 0o755 : personal ? 0o600 : 0o644;
    return { name, target: join(config, name), content, mode, personal };
  });
  const o = shipped.find((file) => file.name === "scripts/o");
  return o && bin !== undefined ? [...shipped, { ...o, name: "bin/o", target: join(bin, "o") }] : shipped;
}

function digest(content: string | Buffer): string {
  return createHash("sha256").update(content).digest("hex");
}

/** Also where a folder of the path is none. */
function isAbsent(error: unknown): boolean {
  return ["ENOENT", "ENOTDIR"].includes((error as NodeJS.ErrnoException).code ?? "");
}

/** Undefined where there is nothing. A symbolic link counts as changed: somebody keeps the file elsewhere on purpose. */
function currentDigest(path: string): string | undefined {
  try {
    return lstatSync(path).isFile() ? digest(readFileSync(path)) : "not a regular file";
  } catch (error) {
    if (isAbsent(error)) return undefined;
    throw toFault(error, `cannot read ${path}`);
  }
}

function write(file: Pick<Shipped, "target" | "content" | "mode">): void {
  try {
    mkdirSync(dirname(file.target), { recursive: true, mode: 0o755 });
    const scratch = `${file.target}.${process.pid}.new`;
    writeFileSync(scratch, file.content, { mode: file.mode });
    chmodSync(scratch, file.mode); // whatever the umask took away
    renameSync(scratch, file.target);
  } catch (error) {
    throw toFault(error, `cannot write ${file.target}`);
  }
}

function readManifest(config: string): Record<string, string> {
  const path = join(config, manifestName);
  try {
    return manifestSchema.parse(JSON.parse(readFileSync(path, "utf8"))).files;
  } catch (error) {
    if (isAbsent(error)) return {};
    // Without it every file that differs counts as the user's: nothing is lost, only not updated.
    if (error instanceof SyntaxError || error instanceof z.ZodError) return {};
    throw toFault(error, `cannot read ${path}`);
  }
}

function writeManifest(config: string, files: Record<string, string>): void {
  const content = `${JSON.stringify({ files }, null, 2)}\n`;
  write({ target: join(config, manifestName), content, mode: 0o644 });
}
