/**
 * What is not yet (`.new-…`) or not any more (`.gone-…`) part of the state. What is made is built aside and renamed into its
 * place; what is removed is renamed away at once and deleted later. They stand beside `sessions/`, where no name of a session can
 * be taken for one of them.
 */
import { mkdirSync, readdirSync, renameSync } from "node:fs";
import { rename } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import { Fault, toFault } from "../fault.ts";
import { newId } from "../ids.ts";
import { folderMode, isErrno, removeTree, syncFolder, writeDurably } from "./disk.ts";
import { Serial } from "./serial.ts";

const pattern = /^\.(new|gone)-/;

export class Leftovers {
  readonly #deletions = new Serial();
  readonly #failures: string[] = [];

  constructor(readonly folder: string) {}

  /** Begins to delete what an earlier server left. Returns a sentence for each change that it had not finished. */
  sweep(): string[] {
    const found = readdirSync(this.folder).filter((name) => pattern.test(name));
    for (const name of found) this.#delete(join(this.folder, name));
    return found
      .filter((name) => name.startsWith(".new-"))
      .map((name) => `${join(this.folder, name)}: what was being written at a crash is removed`);
  }

  /**
   * Fills a new folder and puts it at `target`, durably; or leaves nothing. Throws a Fault of kind "exists" where `target` does.
   * `fill` has brought everything in the folder to disk when it resolves.
   */
  async create(target: string, fill: (folder: string) => Promise<void>): Promise<void> {
    const folder = this.#newPath();
    let placed = false;
    try {
      mkdirSync(folder, { mode: folderMode });
      await fill(folder);
      await syncFolder(folder);
      moveFolder(folder, target);
      placed = true;
      await syncFolder(dirname(target));
    } catch (error) {
      if (placed) moveFolder(target, folder);
      this.#delete(folder);
      throw toFault(error, `${basename(target)} could not be created`);
    }
  }

  /** Replaces a file as a whole: a reader, and a restart after a crash, finds the old or the new content. Durable when it resolves. */
  async replace(target: string, content: string | Uint8Array): Promise<void> {
    const file = this.#newPath();
    try {
      await writeDurably(file, content);
      await rename(file, target);
      await syncFolder(dirname(target));
    } catch (error) {
      this.#delete(file);
      throw toFault(error, `${basename(target)} could not be written`);
    }
  }

  /** Takes a folder away; throws at once where that is not possible. Durable when it resolves; what is in it is deleted later. */
  discard(target: string): Promise<void> {
    const gone = join(this.folder, `.gone-${newId()}`);
    moveFolder(target, gone);
    this.#delete(gone);
    return syncFolder(dirname(target));
  }

  /** Resolves when everything discarded so far is deleted, with a sentence for each folder that could not be. */
  async settled(): Promise<string[]> {
    await this.#deletions.settled();
    return this.#failures.splice(0);
  }

  #newPath(): string {
    return join(this.folder, `.new-${newId()}`);
  }

  #delete(path: string): void {
    // The next start tries again.
    this.#deletions
      .run(() => removeTree(path))
      .catch((error) => this.#failures.push(`${path} could not be deleted: ${toFault(error).message}`));
  }
}

/** rename(2) of a folder; the target must not exist (an empty folder may, the kernel replaces it). */
export function moveFolder(from: string, to: string): void {
  try {
    renameSync(from, to);
  } catch (error) {
    if (isErrno(error, "ENOTEMPTY", "EEXIST", "ENOTDIR"))
      throw new Fault("exists", `${basename(to)} exists already; choose another name`, { cause: error });
    throw toFault(error, `${basename(from)} could not be moved`);
  }
}
