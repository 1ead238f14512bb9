/** Durable changes to the file system: what has been promised survives a crash of the machine, and nothing is ever half there. */
import { close, constants, fsync, open as openFd } from "node:fs";
import { chmod, lstat, open, readdir, rm } from "node:fs/promises";
import { join } from "node:path";

/** For the owner alone: chats hold secrets. */
export const fileMode = 0o600;
export const folderMode = 0o700;

/** Makes the names in a folder durable; a new or renamed file is only as safe as the folder that names it (fsync(2)). */
export function syncFolder(path: string): Promise<void> {
  return new Promise((resolve, reject) => {
    openFd(path, constants.O_RDONLY | constants.O_DIRECTORY, (openError, fd) => {
      if (openError) return reject(openError);
      fsync(fd, (syncError) => close(fd, () => (syncError ? reject(syncError) : resolve())));
    });
  });
}

/** A new file with this content, on disk when it resolves (its name is not: see `syncFolder`). */
export async function writeDurably(path: string, content: string | Uint8Array): Promise<void> {
  const file = await open(path, "w", fileMode);
  try {
    await file.writeFile(content);
    await file.sync();
  } finally {
    await file.close();
  }
}

/** Deletes a tree, also where folders in it have been made read-only (module caches of build tools are). */
export async function removeTree(path: string): Promise<void> {
  try {
    await rm(path, { recursive: true, force: true });
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code !== "EACCES" && code !== "EPERM") throw error;
    await openFolders(path);
    await rm(path, { recursive: true, force: true });
  }
}

async function openFolders(path: string): Promise<void> {
  if (!(await lstat(path)).isDirectory()) return;
  await chmod(path, folderMode);
  for (const entry of await readdir(path, { withFileTypes: true }))
    if (entry.isDirectory()) await openFolders(join(path, entry.name));
}

export function isErrno(error: unknown, ...codes: string[]): boolean {
  return codes.includes((error as NodeJS.ErrnoException | null)?.code ?? "");
}
