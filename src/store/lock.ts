/**
 * One server for one state folder. The lock is a file `lock.N` that names its owner; of several, the greatest N counts. Whoever finds
 * the owner dead makes `lock.N+1`, which only one can (link(2) refuses an existing name), so two servers that start together never
 * both believe the old lock to be theirs. N only ever grows: were it to start again, a slow starter could mistake an old number for free.
 */
import { linkSync, readdirSync, readFileSync, renameSync, unlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { z } from "zod";
import { Fault, toFault } from "../fault.ts";
import { newId } from "../ids.ts";
import { fileMode, isErrno } from "./disk.ts";

/** A process: its number alone may have gone to another one since, its start in clock ticks after boot (proc_pid_stat(5)) may not. */
const ownerSchema = z.object({ pid: z.number(), start: z.string(), boot: z.string() });
type Owner = z.infer<typeof ownerSchema>;

const pattern = /^lock\.(\d+)$/;

export class StateLock {
  #released = false;

  private constructor(
    readonly folder: string,
    readonly number: number,
  ) {}

  /** Throws a Fault of kind "busy" that names the owner's pid while another process holds the lock. */
  static acquire(folder: string): StateLock {
    const mine = temporary(folder);
    try {
      for (;;) {
        writeFileSync(mine, JSON.stringify(self()), { mode: fileMode });
        const last = lockNumbers(folder).at(-1) ?? 0;
        const owner = readOwner(folder, last);
        if (owner && alive(owner)) throw held(folder, owner);
        if (!tryLink(mine, join(folder, `lock.${last + 1}`))) continue;
        // A view of the folder from before others came and went has led to a number that does not count any more.
        if (lockNumbers(folder).at(-1) !== last + 1) {
          remove(join(folder, `lock.${last + 1}`));
          continue;
        }
        removeOlder(folder, last + 1);
        return new StateLock(folder, last + 1);
      }
    } catch (error) {
      throw toFault(error, `${folder} could not be locked`);
    } finally {
      remove(mine);
    }
  }

  /** The file stays, without an owner, so that its number is not used again. */
  release(): void {
    if (this.#released) return;
    this.#released = true;
    const path = join(this.folder, `lock.${this.number}`);
    const empty = temporary(this.folder);
    writeFileSync(empty, "", { mode: fileMode });
    renameSync(empty, path);
  }
}

/** The process that holds the lock of a state folder, or undefined. Takes no lock, and `folder` need not exist. */
export function lockHolder(folder: string): number | undefined {
  let last: number | undefined;
  try {
    last = lockNumbers(folder).at(-1);
  } catch (error) {
    if (isErrno(error, "ENOENT")) return undefined;
    throw toFault(error, `cannot read ${folder}`);
  }
  const owner = last === undefined ? undefined : readOwner(folder, last);
  return owner && alive(owner) ? owner.pid : undefined;
}

function held(folder: string, owner: Owner): Fault {
  return new Fault(
    "busy",
    `another server (pid ${owner.pid}) uses ${folder}; stop it first, or use another state folder`,
  );
}

function lockNumbers(folder: string): number[] {
  return readdirSync(folder)
    .map((name) => Number(pattern.exec(name)?.[1]))
    .filter((number) => number > 0)
    .sort((a, b) => a - b);
}

/** A name that a sweep of leftovers takes away, should a crash leave it. */
function temporary(folder: string): string {
  return join(folder, `.gone-lock-${newId()}`);
}

/** False where the name is taken, and where the sweep of a server that came first has taken `from` away. */
function tryLink(from: string, to: string): boolean {
  try {
    linkSync(from, to);
    return true;
  } catch (error) {
    if (isErrno(error, "EEXIST", "ENOENT")) return false;
    throw error;
  }
}

function removeOlder(folder: string, number: number): void {
  for (const older of lockNumbers(folder).filter((one) => one < number))
    remove(join(folder, `lock.${older}`));
}

function remove(path: string): void {
  try {
    unlinkSync(path);
  } catch (error) {
    if (!isErrno(error, "ENOENT")) throw error;
  }
}

/** Undefined where nobody holds the lock: there is none, or it was released, or a crash of the machine took its content. */
function readOwner(folder: string, number: number): Owner | undefined {
  try {
    return ownerSchema.parse(JSON.parse(readFileSync(join(folder, `lock.${number}`), "utf8")));
  } catch (error) {
    if (error instanceof SyntaxError || error instanceof z.ZodError || isErrno(error, "ENOENT"))
      return undefined;
    throw error;
  }
}

function self(): Owner {
  return { pid: process.pid, start: startOf(process.pid) ?? "", boot: bootId() };
}

function alive(owner: Owner): boolean {
  return owner.boot === bootId() && owner.start === startOf(owner.pid);
}

function bootId(): string {
  return readFileSync("/proc/sys/kernel/random/boot_id", "utf8").trim();
}

/** Field 22 of /proc/PID/stat; counted from the last parenthesis, since the program's name (field 2) may hold blanks. A zombie is dead. */
function startOf(pid: number): string | undefined {
  let stat: string;
  try {
    stat = readFileSync(`/proc/${pid}/stat`, "utf8");
  } catch {
    return undefined;
  }
  const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
  return fields[0] === "Z" ? undefined : fields[19];
}
