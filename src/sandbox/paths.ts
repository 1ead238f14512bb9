/** Paths that are compared with each other. */
import { realpathSync } from "node:fs";
import { basename, dirname, join } from "node:path";

/** Whether `path` is `folder` or lies in it; both absolute and without `..`. */
export function within(path: string, folder: string): boolean {
  return path === folder || folder === "/" || path.startsWith(`${folder}/`);
}

/** As far as a path exists, with its links resolved; the rest as it is. */
export function realpathOfPart(path: string): string {
  try {
    return realpathSync(path);
  } catch {
    const folder = dirname(path);
    return folder === path ? path : join(realpathOfPart(folder), basename(path));
  }
}
