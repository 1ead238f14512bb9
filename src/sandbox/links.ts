/** Following links the way the kernel does, and remembering where they lay: who can write there could lead a grant anywhere. */
import { lstatSync, readlinkSync } from "node:fs";
import { dirname, join } from "node:path";

export interface Followed {
  /** Where the path leads, without links. */
  real: string;
  /** Folders in which the links lay that were followed, links resolved. */
  through: string[];
}

/** As ELOOP of path_resolution(7). */
const most = 40;

/** Undefined where the path leads to nothing that exists. */
export function follow(path: string): Followed | undefined {
  const through: string[] = [];
  const rest = path.split("/");
  let real = "/";
  try {
    for (let name = rest.shift(); name !== undefined; name = rest.shift()) {
      if (name === "" || name === ".") continue;
      if (name === "..") {
        real = dirname(real);
        continue;
      }
      const next = join(real, name);
      if (!lstatSync(next).isSymbolicLink()) {
        real = next;
        continue;
      }
      if (through.push(real) > most) return undefined;
      const target = readlinkSync(next);
      if (target.startsWith("/")) real = "/";
      rest.unshift(...target.split("/"));
    }
    return { real, through };
  } catch {
    return undefined;
  }
}
