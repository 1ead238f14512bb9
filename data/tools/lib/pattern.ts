/** File name patterns of file_glob and file_grep. */
import { relative } from "node:path";

/** Whether a path below `root` matches; a pattern without "/" is about the name, in any folder. */
export function matcher(pattern: string, root: string): (path: string) => boolean {
  const bare = pattern.replace(/^\.\//, "");
  const glob = new Bun.Glob(bare.includes("/") ? bare : `**/${bare}`);
  return (path) => glob.match(relative(root, path));
}
