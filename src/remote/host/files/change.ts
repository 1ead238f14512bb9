/** `file.mkdir`, `file.remove`, `file.rename`. */
import {
  closeSync,
  fchmodSync,
  linkSync,
  mkdirSync,
  openSync,
  renameSync,
  rmdirSync,
  type Stats,
  unlinkSync,
} from "node:fs";
import type { z } from "zod";
import { coded } from "../../protocol/errors.ts";
import type * as wire from "../../protocol/files.ts";
import { at, withFd } from "./beneath.ts";
import { child, parsePath, type RelativePath, relative, shownPath } from "./names.ts";
import { renameNew } from "./native.ts";
import { about, problem } from "./problem.ts";
import { look, namesIn } from "./read.ts";
import { folderFlags, Pauses, type Workspace } from "./workspace.ts";
import { syncFolder } from "./write.ts";

export function mkdir(
  workspace: Workspace,
  params: z.infer<typeof wire.fileMkdir>,
): Promise<Record<string, never>> {
  const path = parsePath(params.path);
  return workspace.change(async () => {
    const first = params.parents ? 1 : path.parts.length;
    for (let depth = Math.max(first, 1); depth <= path.parts.length; depth++)
      await makeFolder(workspace, relative(path.parts.slice(0, depth)), params);
    if (path.parts.length === 0 && !params.parents) throw problem({ code: "EEXIST" }, path);
    return {};
  });
}

async function makeFolder(
  workspace: Workspace,
  path: RelativePath,
  { parents, mode }: { parents: boolean; mode?: number },
): Promise<void> {
  const { folder, name } = openFor(workspace, path, parents);
  await withFd(folder, async () => {
    const there = parents ? look(folder, name) : undefined;
    if (there?.isDirectory()) return;
    if (there) throw problem({ code: there.isSymbolicLink() ? "ELOOP" : "ENOTDIR" }, path);
    about(path, () => mkdirSync(at(folder, name), mode ?? 0o777));
    if (mode !== undefined) withFd(openSync(at(folder, name), folderFlags), (fd) => fchmodSync(fd, mode));
    await syncFolder(folder);
  });
}

/** A folder that is on the way to a new one and there already need not be writable. */
function openFor(
  workspace: Workspace,
  path: RelativePath,
  parents: boolean,
): { folder: number; name: Buffer } {
  const name = path.parts.at(-1)!;
  if (!parents) return workspace.openParent(path);
  const folder = workspace.tree.openFolder(relative(path.parts.slice(0, -1)));
  try {
    if (!look(folder, name)?.isDirectory()) workspace.policy.checkPath(path.text, "write");
    return { folder, name };
  } catch (error) {
    closeSync(folder);
    throw error;
  }
}

export function remove(
  workspace: Workspace,
  params: z.infer<typeof wire.fileRemove>,
): Promise<Record<string, never>> {
  const path = parsePath(params.path);
  return workspace.change(async () => {
    const { folder, name } = workspace.openParent(path);
    return withFd(folder, async () => {
      const stat = there(folder, name, path);
      if (!stat.isDirectory()) about(path, () => unlinkSync(at(folder, name)));
      else {
        if (params.recursive) {
          await everything(workspace, path, "write");
          await empty(workspace, path);
        }
        about(path, () => rmdirSync(at(folder, name)));
      }
      await syncFolder(folder);
      return {};
    });
  });
}

/** @throws CodedFault `file.denied` where something below the folder may not be changed, before anything has been */
async function everything(
  workspace: Workspace,
  path: RelativePath,
  access: "read" | "write",
  as = path,
): Promise<void> {
  const pauses = new Pauses();
  await withFd(workspace.tree.openFolder(path), async (folder) => {
    for (const name of namesIn(folder, path)) {
      workspace.policy.checkPath(child(as, name).text, access);
      if (look(folder, name)?.isDirectory())
        await everything(workspace, child(path, name), access, child(as, name));
      await pauses.take();
    }
  });
}

/** Each folder is opened without following links: what is put in its place meanwhile is removed itself, not what it leads to. */
async function empty(workspace: Workspace, path: RelativePath): Promise<void> {
  const pauses = new Pauses();
  await withFd(workspace.tree.openFolder(path), async (folder) => {
    for (const name of namesIn(folder, path)) {
      const inner = child(path, name);
      workspace.policy.checkPath(inner.text, "write");
      if (look(folder, name)?.isDirectory()) {
        await empty(workspace, inner);
        about(inner, () => rmdirSync(at(folder, name)));
      } else about(inner, () => unlinkSync(at(folder, name)));
      await pauses.take();
    }
  });
}

export function rename(
  workspace: Workspace,
  params: z.infer<typeof wire.fileRename>,
): Promise<Record<string, never>> {
  const [from, to] = [parsePath(params.from), parsePath(params.to)];
  return workspace.change(async () => {
    const source = workspace.openParent(from);
    return withFd(source.folder, async () => {
      const target = workspace.openParent(to);
      return withFd(target.folder, async () => {
        const stat = there(source.folder, source.name, from);
        // Under its new name a denied file would be none.
        if (stat.isDirectory()) {
          await everything(workspace, from, "write");
          await everything(workspace, from, "write", to);
        }
        const occupant = look(target.folder, target.name);
        if (occupant && !(params.replace && occupant.isFile() && stat.isFile()))
          throw problem({ code: "EEXIST" }, to);
        about(to, () => (occupant ? moveOver(source, target) : moveTo(source, target, stat)));
        for (const folder of new Set([target.folder, source.folder])) await syncFolder(folder);
        return {};
      });
    });
  });
}

interface Place {
  folder: number;
  name: Buffer;
}

function moveOver(from: Place, to: Place): void {
  renameSync(at(from.folder, from.name), at(to.folder, to.name));
}

/** Onto a name that nobody has, and that nobody gets meanwhile. */
function moveTo(from: Place, to: Place, stat: Stats): void {
  if (renameNew(from.folder, from.name, to.folder, to.name)) return;
  if (stat.isDirectory()) {
    // Onto a folder with something in it, or a file, rename(2) refuses by itself.
    moveOver(from, to);
    return;
  }
  linkSync(at(from.folder, from.name), at(to.folder, to.name));
  unlinkSync(at(from.folder, from.name));
}

function there(folder: number, name: Buffer, path: RelativePath): Stats {
  const stat = look(folder, name);
  if (!stat) throw coded("file.missing", `${shownPath(path)} does not exist`);
  return stat;
}
