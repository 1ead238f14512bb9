/** The tool folders of this machine as a host is to have them: which files there are, and what is in them. */
import { createHash } from "node:crypto";
import { createReadStream, readdirSync, realpathSync, type Stats, statSync } from "node:fs";
import { join } from "node:path";
import { toolsHash } from "../../protocol/hash.ts";
import type { ToolFile } from "../../protocol/tools.ts";

export interface Manifest {
  hash: string;
  files: ToolFile[];
  /** Where the content with that hash lies here. */
  sources: Map<string, string>;
  /** What could not be taken, one sentence each. */
  problems: string[];
}

interface Found {
  path: string;
  source: string;
  stats: Stats;
}

/** Milliseconds between two looks at the folders: a change has to be on the host within two seconds. */
const interval = 1000;
/** Of the protocol (`toolsManifest`). */
const mostFiles = 20_000;
/** Folders within folders; a link that leads to one of those above it would have no end. */
const deepest = 16;

/** One for all sessions: the folders are walked once for all of them. */
export class LocalTools {
  /** Hashes by what a file's change would change. */
  readonly #hashes = new Map<string, string>();
  #last?: { signature: string; manifest: Promise<Manifest> };
  readonly #listeners = new Set<() => void>();
  #timer?: ReturnType<typeof setInterval>;

  /** @param folders of OLLIE_TOOLS_PATH, in their order */
  constructor(private readonly folders: readonly string[]) {}

  /** As the folders are now. Files are read only where they have changed since they were read last. */
  manifest(): Promise<Manifest> {
    const { found, problems } = this.#walk();
    const signature = found.map(({ path, stats }) => `${path} ${stamp(stats)}`).join("\n");
    if (this.#last?.signature !== signature) {
      const manifest = this.#read(found, problems);
      this.#last = { signature, manifest };
      // Not remembered: a file may have gone while it was read.
      manifest.catch(() => (this.#last = undefined));
    }
    return this.#last!.manifest;
  }

  /** Calls when the folders have changed. Looks only as long as somebody listens. */
  watch(listener: () => void): () => void {
    this.#listeners.add(listener);
    this.#timer ??= setInterval(() => this.#look(), interval);
    this.#timer.unref();
    return () => {
      this.#listeners.delete(listener);
      if (this.#listeners.size > 0) return;
      clearInterval(this.#timer);
      this.#timer = undefined;
    };
  }

  #look(): void {
    const before = this.#last;
    if (!before) return;
    const signature = this.#walk()
      .found.map(({ path, stats }) => `${path} ${stamp(stats)}`)
      .join("\n");
    if (signature === before.signature) return;
    for (const listener of [...this.#listeners]) listener();
  }

  #walk(): { found: Found[]; problems: string[] } {
    const found: Found[] = [];
    const problems: string[] = [];
    this.folders.forEach((folder, index) => void visit(folder, String(index), 0));
    return { found, problems };

    function visit(folder: string, prefix: string, depth: number): void {
      for (const name of names(folder)) {
        const source = join(folder, name);
        const path = `${prefix}/${name}`;
        // Links are followed: what they lead to here is not there.
        const stats = statSync(source, { throwIfNoEntry: false });
        if (!stats) continue;
        if (stats.isDirectory() && depth < deepest) visit(source, path, depth + 1);
        if (!stats.isFile()) continue;
        if (found.length < mostFiles) found.push({ path, source, stats });
        else if (problems.length === 0)
          problems.push(
            `the tool folders hold more than ${mostFiles} files; ${source} and others are left out`,
          );
      }
    }
  }

  async #read(found: readonly Found[], problems: string[]): Promise<Manifest> {
    const files: ToolFile[] = [];
    const sources = new Map<string, string>();
    for (const { path, source, stats } of found) {
      const sha256 = await this.#hash(source, stats);
      if (sha256 === undefined) {
        problems.push(`${source} cannot be read and is not on the host`);
        continue;
      }
      files.push({ path, mode: stats.mode & 0o777, sha256, size: stats.size });
      sources.set(sha256, source);
    }
    return { hash: toolsHash(files), files, sources, problems };
  }

  async #hash(source: string, stats: Stats): Promise<string | undefined> {
    const key = `${realpathSync(source)} ${stamp(stats)}`;
    const known = this.#hashes.get(key);
    if (known) return known;
    try {
      const hash = createHash("sha256");
      for await (const bytes of createReadStream(source)) hash.update(bytes as Uint8Array);
      const digest = hash.digest("hex");
      this.#hashes.set(key, digest);
      return digest;
    } catch {
      return undefined;
    }
  }
}

function stamp({ ino, size, mtimeMs, ctimeMs, mode }: Stats): string {
  return `${ino} ${size} ${mtimeMs} ${ctimeMs} ${mode}`;
}

function names(folder: string): string[] {
  try {
    return readdirSync(folder).sort();
  } catch {
    return [];
  }
}
