/** Errors of the system as the protocol has them. */

import { Fault } from "../../../fault.ts";
import { coded } from "../../protocol/errors.ts";
import { type RelativePath, shownPath } from "./names.ts";

const codes: Record<string, [code: string, why: string]> = {
  ENOENT: ["file.missing", "does not exist"],
  ENOTDIR: ["file.kind", "is no folder, or lies below something that is none"],
  EISDIR: ["file.kind", "is a folder"],
  ENXIO: ["file.kind", "is no regular file"],
  ELOOP: ["file.symlink", "is a link or lies behind one, and links are not followed"],
  EXDEV: ["file.escape", "leads out of the working folder, or onto another file system"],
  EACCES: ["file.denied", "may not be used: the host's user has no permission"],
  EPERM: ["file.denied", "may not be used: the host's user has no permission"],
  EROFS: ["file.denied", "lies on a file system that is read-only"],
  EEXIST: ["file.conflict", "exists already"],
  ENOTEMPTY: ["file.not_empty", "is a folder that is not empty"],
  ENOSPC: ["file.full", "cannot be written: there is no space left on the host"],
  EDQUOT: ["file.full", "cannot be written: the quota of the host's user is used up"],
  EFBIG: ["file.full", "would be too large for the host's file system"],
  ENAMETOOLONG: ["file.name", "is too long a name"],
  EINVAL: ["file.name", "is no name that the host's file system takes"],
  EILSEQ: ["file.name", "is no name that the host's file system takes"],
  EBUSY: ["file.denied", "is in use"],
  ETXTBSY: ["file.denied", "is a program that runs"],
  EMFILE: ["file.io", "cannot be opened: too many files are open on the host"],
};

export function problem(error: unknown, path: RelativePath): Fault {
  if (error instanceof Fault) return error;
  const code = (error as NodeJS.ErrnoException | null)?.code ?? "";
  const [ours, why] = codes[code] ?? ["file.io", `cannot be used: ${(error as Error)?.message ?? error}`];
  return coded(ours, `${shownPath(path)} ${why}`, {}, { cause: error });
}

/** Runs it, its system errors told as those of a path. */
export function about<T>(path: RelativePath, work: () => T): T {
  try {
    return work();
  } catch (error) {
    throw problem(error, path);
  }
}
