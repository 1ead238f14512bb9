/** Small programs of our own that this room starts. */
import { join } from "node:path";

const compiled = import.meta.path.startsWith("/$bunfs/");

/**
 * How to start one of them.
 * @param command what `olliesrv` knows it as
 * @param file its source, in this folder
 */
export function ownCommand(command: string, file: string): string[] {
  const program = process.execPath.replace(/ \(deleted\)$/, "");
  return compiled
    ? [program, command]
    : [program, "--config=/dev/null", "--no-env-file", join(import.meta.dir, file)];
}
