/** The working folder as an archive: all that the policy lets be read. */
import { once } from "node:events";
import { createWriteStream, readlinkSync, readSync } from "node:fs";
import { finished } from "node:stream/promises";
import { constants, createZstdCompress } from "node:zlib";
import { coded } from "../../protocol/errors.ts";
import { at, withFd } from "../files/beneath.ts";
import { joined, relative, shownPath } from "../files/names.ts";
import { type Walked, walk } from "../files/walk.ts";
import type { Workspace } from "../files/workspace.ts";
import { header, type Member, padding, trailer } from "./tar.ts";

const piece = 256 * 1024;

/**
 * @param file is made; the caller removes it where this fails
 * @returns how many entries are not in it
 */
export async function archive(workspace: Workspace, file: string): Promise<number> {
  const packing = createZstdCompress({ params: { [constants.ZSTD_c_compressionLevel]: 3 } });
  const out = createWriteStream(file, { flags: "wx", mode: 0o600 });
  packing.pipe(out);
  packing.on("error", (error) => out.destroy(error));
  const written = finished(out);
  written.catch(() => packing.destroy());
  const put = async (bytes: Uint8Array) => {
    if (bytes.length > 0 && !packing.write(bytes)) await Promise.race([once(packing, "drain"), written]);
  };
  let left = 0;
  for await (const found of walk(workspace, relative([]), { onLeft: () => left++ })) {
    if (!(await member(workspace, found, put))) left++;
  }
  await put(trailer);
  packing.end();
  await written;
  return left;
}

/** False for what is no file, folder or link, cannot be opened, or has gone. */
async function member(
  workspace: Workspace,
  { path, stat }: Walked,
  put: (bytes: Uint8Array) => Promise<void>,
): Promise<boolean> {
  const about = { name: joined(path.parts), mode: stat.mode, size: 0 };
  if (stat.isDirectory()) await put(header({ ...about, kind: "dir" }));
  else if (stat.isSymbolicLink()) {
    const folder = workspace.tree.openFolder(relative(path.parts.slice(0, -1)));
    const target = withFd(folder, () => readlinkSync(at(folder, path.parts.at(-1)!), { encoding: "buffer" }));
    await put(header({ ...about, kind: "link", target }));
  } else if (stat.isFile()) return content(workspace, path, { ...about, kind: "file" }, put);
  else return false;
  return true;
}

async function content(
  workspace: Workspace,
  path: Walked["path"],
  about: Member,
  put: (bytes: Uint8Array) => Promise<void>,
): Promise<boolean> {
  let opened: ReturnType<Workspace["openFile"]>;
  try {
    opened = workspace.openFile(path);
  } catch {
    return false;
  }
  const { fd, stat } = opened;
  return withFd(fd, async () => {
    await put(header({ ...about, mode: stat.mode, size: stat.size }));
    for (let done = 0; done < stat.size; ) {
      // One of its own each time: what was handed over is packed later.
      const bytes = Buffer.allocUnsafe(Math.min(piece, stat.size - done));
      const read = readSync(fd, bytes, 0, bytes.length, done);
      if (read === 0)
        throw coded("session.changing", `${shownPath(path)} was shortened while it was exported`, {
          retry: true,
        });
      await put(bytes.subarray(0, read));
      done += read;
    }
    await put(padding(stat.size));
    return true;
  });
}
