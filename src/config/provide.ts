/** Making the shipped files available also where the config folder cannot be written: a read-only home costs no agents and tools. */
import { existsSync, rmSync } from "node:fs";
import { join } from "node:path";
import { Fault, toFault } from "../fault.ts";
import { installData, manifestName } from "./install.ts";
import { type Paths, shippedFolder } from "./paths.ts";

export interface Provided {
  /** How many files are new or newer. */
  written: number;
  /** What could not be written, and what is used instead. */
  fault?: Fault;
}

/**
 * Installs the shipped files into the config folder, and `o` into `~/.local/bin`. Where nothing has ever been installed there and
 * nothing can be, they go into the state folder, and the search paths (to be resolved anew) end there.
 */
export function provideData({ config, state, home }: Pick<Paths, "config" | "state" | "home">): Provided {
  const instead = shippedFolder(state);
  try {
    const { written } = installData(config, join(home, ".local/bin"));
    rmSync(instead, { recursive: true, force: true });
    return { written: written.length };
  } catch (error) {
    const fault = toFault(error);
    // What is missing there the user has removed.
    if (existsSync(join(config, manifestName))) return { written: 0, fault };
    try {
      const { written } = installData(instead);
      const text = `${fault.message}; agents, prompts and tools are those in ${instead}`;
      return { written: written.length, fault: new Fault(fault.kind, text, { cause: error }) };
    } catch {
      return { written: 0, fault };
    }
  }
}
