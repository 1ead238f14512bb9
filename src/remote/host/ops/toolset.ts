/** The tools that the client has brought: `BASE/tools/HASH/0`, `1` … in the order of its own folders. */
import { readdirSync } from "node:fs";
import { join } from "node:path";
import type { z } from "zod";
import { createRegistry } from "../../../tools/registry.ts";
import type { Tool, ToolRegistry } from "../../../tools/tool.ts";
import { coded } from "../../protocol/errors.ts";
import type { toolsList } from "../../protocol/tools.ts";

export class Toolset {
  #current?: { hash: string; folders: string[]; registry: ToolRegistry };

  /** @param hash of the tools that count now */
  constructor(
    private readonly base: string,
    private readonly hash: () => string,
  ) {}

  get folders(): string[] {
    return this.#now().folders;
  }

  /** @throws CodedFault `op.tool` where there is none of that name */
  get(name: string): Tool {
    const { registry } = this.#now();
    const tool = registry.get(name);
    if (tool) return tool;
    const problem = registry.problems().find(({ file }) => file.endsWith(`/${name}.meta`));
    throw coded("op.tool", `there is no tool ${name} on this host${problem ? `: ${problem.reason}` : ""}`);
  }

  list(): z.infer<typeof toolsList> {
    const { registry } = this.#now();
    return { tools: registry.list(), problems: registry.problems() };
  }

  close(): void {
    this.#current?.registry.close();
  }

  /** Calls that run keep the folder that they were started from. */
  #now() {
    const hash = this.hash();
    if (this.#current?.hash === hash && this.#current.folders.length > 0) return this.#current;
    this.#current?.registry.close();
    const folders = foldersOf(this.base, hash);
    this.#current = { hash, folders, registry: createRegistry(folders.join(":")) };
    return this.#current;
  }
}

function foldersOf(base: string, hash: string): string[] {
  if (!/^[0-9a-f]{64}$/.test(hash)) return [];
  const folder = join(base, "tools", hash);
  try {
    const names = readdirSync(folder).filter((name) => /^\d+$/.test(name));
    return names.sort((a, b) => Number(a) - Number(b)).map((name) => join(folder, name));
  } catch {
    return []; // not brought yet
  }
}
