/** `tools.manifest`, `blob.put`, `tools.activate`: need no session, since a session is made with the tools that it uses. */
import type { z } from "zod";
import { coded } from "../../protocol/errors.ts";
import { blobPut, type ToolFile, toolsActivate, toolsManifest } from "../../protocol/tools.ts";
import { Blobs } from "./blobs.ts";
import { checkManifest } from "./manifest.ts";
import { ToolSets } from "./sets.ts";

export class ToolStore {
  readonly #blobs: Blobs;
  readonly #sets: ToolSets;
  /** What this client has said, by hash. */
  readonly #manifests = new Map<string, readonly ToolFile[]>();

  /**
   * @param used hashes of the sets that sessions use
   * @throws Error where BASE is not ours
   */
  constructor(
    base: string,
    private readonly used: () => ReadonlySet<string>,
  ) {
    this.#blobs = new Blobs(base);
    this.#sets = new ToolSets(base, this.#blobs);
  }

  /** What has to be brought; of what was begun, how much is here. */
  manifest(params: z.infer<typeof toolsManifest>): { missing: string[]; begun: Record<string, number> } {
    const files = checkManifest(params);
    this.#manifests.set(params.hash, files);
    if (this.#sets.has(params.hash)) return { missing: [], begun: {} };
    const absent = new Set(
      files.filter(({ sha256, size }) => !this.#blobs.has(sha256, size)).map(({ sha256 }) => sha256),
    );
    const begun = [...absent]
      .map((sha256) => [sha256, this.#blobs.begun(sha256)] as const)
      .filter(([, bytes]) => bytes > 0);
    return { missing: [...absent], begun: Object.fromEntries(begun) };
  }

  put(params: z.infer<typeof blobPut>): Promise<{ have: number }> {
    return this.#blobs.put(params);
  }

  /** Makes the set, and removes what no session needs any more. */
  activate({ hash }: z.infer<typeof toolsActivate>): object {
    const files = this.#manifests.get(hash);
    if (!files && !this.#sets.has(hash))
      throw coded("tools.unknown", `nobody has said what tools ${hash} are`, {
        hint: "send tools.manifest first",
      });
    if (files) this.#sets.make(hash, files);
    this.sweep();
    return {};
  }

  sweep(now?: number): void {
    this.#sets.sweep(this.used(), now);
    this.#blobs.sweep(now);
  }
}

export const toolSchemas = {
  "tools.manifest": toolsManifest,
  "blob.put": blobPut,
  "tools.activate": toolsActivate,
} as const;
