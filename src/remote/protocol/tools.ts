/** `tools.*` and `blob.put`. */
import { z } from "zod";
import { base64, sha256 } from "./values.ts";

export const toolFile = z.object({
  /** Below the folder; a tool folder of the client comes first as `0/`, the next as `1/`, so that their order counts. */
  path: z.string(),
  mode: z.int(),
  sha256,
  size: z.int(),
});
export type ToolFile = z.infer<typeof toolFile>;

/** `hash` is that of the sorted list (hash.ts). Answers with the hashes of files that are not here yet. */
export const toolsManifest = z.object({ hash: sha256, files: z.array(toolFile).max(20_000) });
export const toolsMissing = z.object({
  missing: z.array(sha256),
  /** Bytes of missing ones that are here from an upload that broke off: the next piece may be the one behind them. */
  begun: z.record(sha256, z.int()).default({}),
});
/** Pieces in order; the last has `last`, after which the whole is held against its hash. */
export const blobPut = z.object({ sha256, off: z.int(), data: base64, last: z.boolean() });
export const toolsActivate = z.object({ hash: sha256 });

/** A tool as the host has found it, its variants weighed there. Paths are the host's. */
export const remoteTool = z.object({
  name: z.string(),
  description: z.string(),
  documentation: z.string(),
  schema: z.record(z.string(), z.unknown()),
  path: z.string(),
  folder: z.string(),
  tier: z.enum(["hot", "cold"]),
  concurrency: z.enum(["read", "write", "exclusive"]),
  readOnly: z.boolean(),
  elevated: z.boolean(),
  sudo: z.boolean(),
  timeout: z.number(),
  remote: z.boolean(),
  service: z.object({ path: z.string(), idle: z.number(), idleVariable: z.string().optional() }).optional(),
});
export const toolsList = z.object({
  tools: z.array(remoteTool),
  problems: z.array(z.object({ file: z.string(), reason: z.string() })),
});
