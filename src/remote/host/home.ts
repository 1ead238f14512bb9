/** Folders as a client names them, who has not seen this host. */
import { homedir } from "node:os";

/** `~`, and what is below it, as a path; others as they are. */
export function fromHome(path: string): string {
  return path === "~" || path.startsWith("~/") ? homedir() + path.slice(1) : path;
}
