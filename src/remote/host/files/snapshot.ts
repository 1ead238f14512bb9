/**
 * `file.snapshot`: what is below a folder as one hash. Of a folder it is the SHA-256 over its entries, sorted by the bytes of their names, each as
 * `KIND MODE SIZE HASH NAME` and a NUL: MODE in octal, SIZE that of a file, else 0, HASH of a file's bytes, of a link's target, of a folder this
 * very hash, of anything else of nothing. Times and owners are left out: the same files have the same hash on any host.
 */
import { createHash } from "node:crypto";
import { readlinkSync, type Stats } from "node:fs";
import type { z } from "zod";
import type * as wire from "../../protocol/files.ts";
import { at, withFd } from "./beneath.ts";
import { child, nameOf, parsePath, pathOf, type RelativePath } from "./names.ts";
import { about } from "./problem.ts";
import { entryLimit, hashOf, kindOf, look, namesIn } from "./read.ts";
import { Pauses, type Workspace } from "./workspace.ts";

type Entry = NonNullable<wire.FileSnapshotted["entries"]>[number];

export async function snapshot(
  workspace: Workspace,
  params: z.infer<typeof wire.fileSnapshot>,
): Promise<wire.FileSnapshotted> {
  const path = parsePath(params.path);
  const after = params.after === undefined ? undefined : parsePath(params.after);
  const list = params.entries ? new Page(entryLimit(workspace, params.limit), after) : undefined;
  const taken = new Snapshot(workspace, list);
  const root = await taken.folder(path, workspace.openFolder(path));
  const { files, bytes, left } = taken;
  return { root, files, bytes, left, ...(list && { entries: list.entries, next: list.next }) };
}

class Snapshot {
  files = 0;
  bytes = 0;
  left = 0;
  readonly #pauses = new Pauses();

  constructor(
    private readonly workspace: Workspace,
    private readonly list: Page | undefined,
  ) {}

  /** @param open its descriptor, which is closed */
  async folder(path: RelativePath, open: number): Promise<string> {
    return withFd(open, async (fd) => {
      const hash = createHash("sha256");
      for (const name of namesIn(fd, path)) {
        const here = child(path, name);
        const stat = this.workspace.policy.allowsPath(here.text, "read") ? look(fd, name) : undefined;
        if (!stat) {
          this.left++;
          continue;
        }
        const entry = this.list?.add(here, stat);
        const of = await this.#hash(fd, name, here, stat);
        if (entry) Object.assign(entry, of);
        const size = stat.isFile() ? stat.size : 0;
        const mode = (stat.mode & 0o7777).toString(8);
        hash
          .update(`${kindOf(stat)} ${mode} ${size} ${of.sha256 ?? "-"} `)
          .update(name)
          .update("\0");
        await this.#pauses.take();
      }
      return hash.digest("hex");
    });
  }

  async #hash(
    folder: number,
    name: Buffer,
    path: RelativePath,
    stat: Stats,
  ): Promise<Pick<Entry, "sha256" | "target">> {
    if (stat.isDirectory()) return { sha256: await this.folder(path, this.workspace.tree.openFolder(path)) };
    if (stat.isSymbolicLink()) {
      const target = about(path, () => readlinkSync(at(folder, name), { encoding: "buffer" }));
      return { sha256: createHash("sha256").update(target).digest("hex"), target: nameOf(target) };
    }
    if (!stat.isFile()) return {};
    this.files++;
    const { fd } = this.workspace.openFile(path);
    const sha256 = await withFd(fd, (file) => hashOf(file, (count) => (this.bytes += count)));
    return { sha256 };
  }
}

/** The entries of one answer. */
class Page {
  readonly entries: Entry[] = [];
  next?: Entry["path"];

  constructor(
    private readonly limit: number,
    private readonly after: RelativePath | undefined,
  ) {}

  add(path: RelativePath, stat: Stats): Entry | undefined {
    if (this.next !== undefined || (this.after && !isBehind(path, this.after))) return undefined;
    if (this.entries.length === this.limit) {
      this.next = this.entries.at(-1)!.path;
      return undefined;
    }
    const entry = { path: pathOf(path), kind: kindOf(stat), mode: stat.mode & 0o7777, size: stat.size };
    this.entries.push(entry);
    return entry;
  }
}

/** In the order of a walk: name by name, a folder before what is in it. */
function isBehind(path: RelativePath, other: RelativePath): boolean {
  for (const [index, part] of path.parts.entries()) {
    const theirs = other.parts[index];
    if (theirs === undefined) return true;
    const order = Buffer.compare(part, theirs);
    if (order !== 0) return order > 0;
  }
  return false;
}
