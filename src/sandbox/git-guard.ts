/**
 * Hooks and config of a repository are programs that git will run as the user, outside of any sandbox. Where no mount keeps tools from
 * writing them, they are compared before and after a call; what has changed is put back, and what was there instead is kept.
 *
 * Calls that run at the same time share what was there before the first of them, so that a change is undone once, and none of them takes
 * another's change for what was there. A repository that a call makes where there was none stays, without the hooks and settings that
 * `git init` would not have written.
 */
import { lstatSync, mkdirSync, statSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import { toFault } from "../fault.ts";
import { findRepository, isGitDir, protectedPaths, type Repository } from "./git.ts";
import { plainConfig } from "./git-config.ts";
import { within } from "./paths.ts";
import { type Entry, replace, same, take, write } from "./snapshot.ts";

export interface Watched {
  /** Links resolved, as all paths here. */
  cwd: string;
  /** The one that `cwd` lies in. */
  repository?: Repository;
  /** What tools cannot write in any case, such as a policy's `frozen` behind mounts: others may change it meanwhile. */
  held?: readonly string[];
}

/** What lay at a path before the first of the calls that still run. */
interface Before {
  entry: Entry;
  calls: number;
}

export class GitGuard {
  readonly #before = new Map<string, Before>();

  /**
   * Before a call.
   * @returns what is to be called once after it, with a folder that tools cannot write to; it gives a sentence for each change undone
   */
  watch({ cwd, repository, held = [] }: Watched): (keep: string) => string[] {
    // One that a call that still runs has made is none yet.
    const born = repository && this.#before.get(join(repository.top, ".git"))?.entry.kind === "absent";
    const place = born ? undefined : repository;
    const spots = spotsOf(cwd, place);
    const paths = [...(place ? protectedPaths(place) : []), ...spots.map((spot) => join(spot, ".git"))];
    for (const path of paths) this.#retain(path);
    let over = false;
    return (keep) => {
      if (over) return [];
      over = true;
      const before = new Map(paths.map((path) => [path, this.#before.get(path)!.entry]));
      for (const path of paths) this.#release(path);
      return new Undoing(keep, before, held).undo(place, spots);
    };
  }

  /** After a call that was allowed to change all that: what is there now is what others find. */
  accept(): void {
    for (const [path, before] of this.#before) before.entry = look(path);
  }

  #retain(path: string): void {
    const known = this.#before.get(path);
    if (known) known.calls++;
    else this.#before.set(path, { entry: look(path), calls: 1 });
  }

  #release(path: string): void {
    const known = this.#before.get(path)!;
    known.calls--;
    if (known.calls === 0) this.#before.delete(path);
  }
}

/** Folders from `cwd` up to the top that have no repository, where one could be put in front of the one that holds now. */
function spotsOf(cwd: string, repository: Repository | undefined): string[] {
  // Without a repository only the folder itself is the tools' to write.
  if (!repository) return [cwd];
  const spots: string[] = [];
  for (
    let folder = cwd;
    folder !== repository.top && within(folder, repository.top);
    folder = dirname(folder)
  )
    spots.push(folder);
  return spots;
}

/** A `.git` that is a folder is known by its inode: what is in it is git's to write. */
function look(path: string): Entry {
  const stat = basename(path) === ".git" ? lstatSync(path, { throwIfNoEntry: false }) : undefined;
  return stat?.isDirectory() ? { kind: "other", stamp: `${stat.dev}:${stat.ino}` } : take(path);
}

/** One look afterwards. */
class Undoing {
  readonly #sentences: string[] = [];
  #kept = 0;

  constructor(
    readonly keep: string,
    readonly before: ReadonlyMap<string, Entry>,
    readonly held: readonly string[],
  ) {}

  undo(repository: Repository | undefined, spots: readonly string[]): string[] {
    const pointer = repository && join(repository.top, ".git");
    const swapped = pointer !== undefined && this.#checkFolder(pointer);
    for (const [path, entry] of this.before) {
      if (path === pointer && entry.kind === "other") continue;
      if (spots.includes(dirname(path)) && basename(path) === ".git") continue;
      if (!swapped && this.held.includes(path)) continue;
      const now = take(path);
      if (!same(now, entry) && exists(dirname(path))) this.#put(path, now, entry);
    }
    if (repository) this.#cleanNew(repository);
    for (const spot of spots) this.#checkSpot(spot);
    return this.#sentences;
  }

  /** True where `.git` is not the folder that it was. */
  #checkFolder(path: string): boolean {
    const entry = this.before.get(path);
    const now = look(path);
    if (entry?.kind !== "other" || same(now, entry)) return false;
    if (now.kind === "file" || now.kind === "link") this.#put(path, now, { kind: "absent" });
    this.#sentences.push(
      now.kind === "other"
        ? `${path} is another folder than before the call; hooks and config in it are set to what they were`
        : `${path} is gone`,
    );
    return true;
  }

  /** Where no repository was. A pointer to one must be believable, or git would be led to a config anywhere. */
  #checkSpot(spot: string): void {
    const path = join(spot, ".git");
    const now = look(path);
    const entry = this.before.get(path)!;
    if (entry.kind === "file" || entry.kind === "link") {
      if (!same(now, entry)) this.#put(path, now, entry);
      return;
    }
    if (now.kind === "other") this.#cleanNew({ top: spot, gitDir: path, commonDir: path });
    else if (now.kind === "absent") {
      if (isGitDir(spot)) this.#cleanNew({ top: spot, gitDir: spot, commonDir: spot });
    } else {
      const { repository } = findRepository(spot, "/");
      if (repository?.top !== spot) this.#put(path, now, { kind: "absent" });
      else if (within(repository.commonDir, spot)) this.#cleanNew(repository);
    }
  }

  #cleanNew(repository: Repository): void {
    try {
      for (const path of protectedPaths(repository)) if (!this.before.has(path)) this.#clean(path);
    } catch (error) {
      this.#sentences.push(
        `${toFault(error).message}; until then look at what is in it before git is used there`,
      );
    }
  }

  /** What a call has made where nothing was: what git itself would have written may stay. */
  #clean(path: string): void {
    const now = take(path);
    const name = basename(path);
    if (now.kind === "absent" || name === ".git" || name === "gitdir") return;
    if (name === "hooks" && now.kind === "folder") {
      const entries = Object.fromEntries(
        Object.entries(now.entries).filter(([hook, { kind }]) => hook.endsWith(".sample") && kind === "file"),
      );
      if (!same(now, { ...now, entries })) this.#put(path, now, { ...now, entries });
    } else if (name.startsWith("config") && now.kind === "file") {
      const plain = plainConfig(now.content.toString("latin1"));
      if (plain !== now.content.toString("latin1"))
        this.#put(path, now, { ...now, content: Buffer.from(plain, "latin1") });
    } else if (name !== "commondir" || now.kind !== "file" || now.content.toString().trim() !== "../..") {
      this.#put(path, now, { kind: "absent" });
    }
  }

  /** First kept, then put back. */
  #put(path: string, now: Entry, entry: Entry): void {
    try {
      const kept = now.kind === "absent" || now.kind === "other" ? undefined : this.#store(path, now);
      if (entry.kind === "other") throw new Error("it is too large");
      replace(path, entry);
      const where = kept ? `; what the call had made of it is ${kept}` : "";
      this.#sentences.push(
        `${path} is protected, since git runs what it says: the change was undone${where}. To change it, ask for elevated`,
      );
    } catch (error) {
      this.#sentences.push(
        `${path} was changed and could not be put back (${toFault(error).message}): look at it before git is used there`,
      );
    }
  }

  #store(path: string, entry: Entry): string {
    const folder = join(this.keep, "undone");
    mkdirSync(folder, { recursive: true, mode: 0o700 });
    for (;;) {
      const kept = join(folder, `${Date.now()}-${this.#kept++}-${basename(path)}`);
      if (exists(kept)) continue;
      write(kept, entry);
      return kept;
    }
  }
}

function exists(path: string): boolean {
  return statSync(path, { throwIfNoEntry: false }) !== undefined;
}
