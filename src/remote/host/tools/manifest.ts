/** What a client says its tools are, before a file of it is made. */
import type { z } from "zod";
import { coded } from "../../protocol/errors.ts";
import { toolsHash } from "../../protocol/hash.ts";
import type { ToolFile, toolsManifest } from "../../protocol/tools.ts";

/** Names within a path, bytes of a name, bytes of all files together. */
const depthLimit = 32;
const nameLimit = 255;
const sizeLimit = 2 * 1024 * 1024 * 1024;

/**
 * The files, if all of them can lie side by side in one folder and nowhere else.
 * @throws CodedFault `tools.path`, `tools.hash`, `tools.too_large`
 */
export function checkManifest({ hash, files }: z.infer<typeof toolsManifest>): readonly ToolFile[] {
  const found = toolsHash(files);
  if (found !== hash) throw coded("tools.hash", `the files are those of ${found}, and not of ${hash}`);
  const paths = new Set<string>();
  const folders = new Set<string>();
  let size = 0;
  for (const file of files) {
    const refuse = (why: string): never => {
      throw coded("tools.path", `${JSON.stringify(file.path)} ${why}`);
    };
    const names = file.path.split("/");
    if (file.path.startsWith("/")) refuse("is absolute");
    if (names.some((name) => name === "" || name === "." || name === ".."))
      refuse("has an empty name, . or .. in it");
    if (/[\0\\]/.test(file.path)) refuse("has a character that no name of a tool has");
    if (names.length > depthLimit) refuse(`has more than ${depthLimit} names`);
    if (names.some((name) => Buffer.byteLength(name) > nameLimit))
      refuse(`has a name of more than ${nameLimit} bytes`);
    if (paths.has(file.path)) refuse("is there twice");
    paths.add(file.path);
    for (let depth = 1; depth < names.length; depth++) folders.add(names.slice(0, depth).join("/"));
    if (file.size < 0 || file.mode < 0) refuse("has a size or mode that cannot be");
    size += file.size;
  }
  const both = [...paths].find((path) => folders.has(path));
  if (both !== undefined) throw coded("tools.path", `${JSON.stringify(both)} is a file and a folder`);
  if (size > sizeLimit)
    throw coded("tools.too_large", `the tools have ${size} bytes, more than ${sizeLimit}`);
  return files;
}
