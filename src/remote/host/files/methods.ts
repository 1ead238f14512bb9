/** The methods of files: their names, what they take, what they do. */
import type { z } from "zod";
import * as wire from "../../protocol/files.ts";
import { mkdir, remove, rename } from "./change.ts";
import { list, readBytes, readText, stat } from "./read.ts";
import { snapshot } from "./snapshot.ts";
import { search, walkList } from "./walk.ts";
import type { Workspace } from "./workspace.ts";
import { cas, write } from "./write.ts";

export interface FileMethod {
  schema: z.ZodType;
  /** Refused once the session is sealed. */
  writes: boolean;
  /** @param params as the schema has made them */
  run(workspace: Workspace, params: never): Promise<unknown>;
}

function method<S extends z.ZodType>(
  schema: S,
  run: (workspace: Workspace, params: z.infer<S>) => Promise<unknown>,
  writes = false,
): FileMethod {
  return { schema, run: run as FileMethod["run"], writes };
}

export const fileMethods: Readonly<Record<string, FileMethod>> = {
  "file.stat": method(wire.fileStat, stat),
  "file.read": method(wire.fileRead, readText),
  "file.list": method(wire.fileList, list),
  "file.walk": method(wire.fileWalk, walkList),
  "file.search": method(wire.fileSearch, search),
  "file.snapshot": method(wire.fileSnapshot, snapshot),
  "file.write": method(wire.fileWrite, write, true),
  "file.cas": method(wire.fileCas, cas, true),
  "file.mkdir": method(wire.fileMkdir, mkdir, true),
  "file.remove": method(wire.fileRemove, remove, true),
  "file.rename": method(wire.fileRename, rename, true),
  "blob.get": method(wire.blobGet, readBytes),
};
