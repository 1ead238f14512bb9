/** Launch images as files: the kernel executes nothing else on every host, and a background job needs its own after the server is gone. */
import { createHash } from "node:crypto";
import { existsSync, mkdirSync, readdirSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { buildImage, failurePrefix } from "./image.ts";
import type { Step } from "./step.ts";
import type { Machine } from "./syscalls.ts";

/** Images that are kept; one for each way of launching, so few are in use at a time. */
const kept = 256;

export class Images {
  /** Names, the least recently used first. */
  readonly #names = new Set<string>();

  /** @param folder that no sandbox can write, of this server alone; what lies in it is removed */
  constructor(
    readonly folder: string,
    readonly machine: Machine,
    /** As in `buildImage`. */
    readonly prefix = failurePrefix,
  ) {
    mkdirSync(folder, { recursive: true, mode: 0o700 });
    for (const name of readdirSync(folder)) rmSync(join(folder, name), { recursive: true, force: true });
  }

  /** Path of the program that does these steps. The same steps give the same path. */
  pathOf(steps: readonly Step[]): string {
    const image = buildImage(steps, this.machine, this.prefix);
    const name = createHash("sha256").update(image).digest("hex").slice(0, 32);
    const path = join(this.folder, name);
    if (!this.#names.delete(name) || !existsSync(path)) write(path, image);
    this.#names.add(name);
    const [oldest] = this.#names;
    if (this.#names.size > kept && oldest !== undefined) {
      this.#names.delete(oldest);
      rmSync(join(this.folder, oldest), { force: true });
    }
    return path;
  }

  remove(): void {
    rmSync(this.folder, { recursive: true, force: true });
  }
}

/** Renamed into place: a program that is being written cannot be executed. */
function write(path: string, image: Uint8Array): void {
  const scratch = `${path}.new`;
  writeFileSync(scratch, image, { mode: 0o500 });
  renameSync(scratch, path);
}
