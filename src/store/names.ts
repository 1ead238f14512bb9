/** Names of sessions and agents, which are the names of their folders. */
import { Fault } from "../fault.ts";

const maxBytes = 128;

/** Throws a Fault unless `name` can be the name of a folder. What the namespace reserves beyond that is the namespace's business. */
export function checkName(name: string): void {
  const wrong =
    name === ""
      ? "is empty"
      : name === "." || name === ".."
        ? "is reserved by the file system"
        : /[/\0]/.test(name)
          ? "holds a slash or a NUL"
          : Buffer.byteLength(name) > maxBytes
            ? `is longer than ${maxBytes} bytes`
            : name.isWellFormed()
              ? undefined
              : "is not valid Unicode";
  if (wrong) throw new Fault("invalid", `the name ${JSON.stringify(name.slice(0, 40))} ${wrong}`);
}
