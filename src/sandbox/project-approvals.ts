/**
 * Project files that the user has approved: path → hash of the content it had then. A file that was changed since, or lies elsewhere, is
 * not approved. Files of other hosts are there as TARGET:PATH. Kept in the state folder, where no tool can read or write.
 */
import { createHash } from "node:crypto";
import { mkdirSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { z } from "zod";
import { readTextFile } from "../config/yaml.ts";
import { Fault, toFault } from "../fault.ts";
import { sizeLimit } from "./config.ts";

const schema = z.object({
  approved: z.record(z.string(), z.object({ sha256: z.string(), time: z.string() })),
});
type Approved = z.infer<typeof schema>["approved"];

export function digest(text: string): string {
  return createHash("sha256").update(text).digest("hex");
}

export class ProjectApprovals {
  readonly file: string;

  constructor(readonly state: string) {
    this.file = join(state, "sandbox-approvals.json");
  }

  /** A damaged file approves nothing. */
  holds(path: string, text: string): boolean {
    try {
      const approved = this.#read();
      return Object.hasOwn(approved, path) && approved[path]!.sha256 === digest(text);
    } catch {
      return false;
    }
  }

  /** @throws Fault where the file of approvals is damaged or cannot be written */
  approve(path: string, text: string): void {
    this.#approve(path, digest(text));
  }

  /** A file of another host, by the hash of what it holds. @throws Fault as `approve` */
  approveThere(target: string, path: string, sha256: string): void {
    this.#approve(`${target}:${path}`, sha256);
  }

  /** Hashes of all files of a host that are approved; none where the file of approvals is damaged. */
  there(target: string): string[] {
    try {
      const entries = Object.entries(this.#read());
      return entries.flatMap(([path, { sha256 }]) => (path.startsWith(`${target}:/`) ? [sha256] : []));
    } catch {
      return [];
    }
  }

  #approve(path: string, sha256: string): void {
    this.#write({ ...this.#read(), [path]: { sha256, time: new Date().toISOString() } });
  }

  /** False where there was nothing to take back. @throws Fault as `approve` */
  revoke(path: string): boolean {
    const { [path]: before, ...rest } = this.#read();
    if (before) this.#write(rest);
    return before !== undefined;
  }

  #read(): Approved {
    const text = readTextFile(this.file, { limit: sizeLimit });
    if (text === undefined) return {};
    try {
      return schema.parse(JSON.parse(text)).approved;
    } catch (error) {
      throw new Fault("invalid", `${this.file} is damaged: remove it and approve again`, { cause: error });
    }
  }

  #write(approved: Approved): void {
    const scratch = `${this.file}.${process.pid}.new`;
    try {
      mkdirSync(this.state, { recursive: true, mode: 0o700 });
      writeFileSync(scratch, `${JSON.stringify({ approved }, null, 2)}\n`, { mode: 0o600, flush: true });
      renameSync(scratch, this.file);
    } catch (error) {
      rmSync(scratch, { force: true });
      throw toFault(error, `cannot write ${this.file}`);
    }
  }
}
