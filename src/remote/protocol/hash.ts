/** The hashes that both ends make of the same thing. */
import { createHash, createHmac, timingSafeEqual } from "node:crypto";
import type { OpStart } from "./operation.ts";
import type { ToolFile } from "./tools.ts";

/** SHA-256 of a value as JSON with sorted keys, hex. */
export function hashOf(value: unknown): string {
  return createHash("sha256").update(canonical(value)).digest("hex");
}

/** What makes two requests the same operation. */
export function opHash({
  steps,
  timeout,
  sandbox,
  detach,
}: Omit<OpStart, "opId" | "hash" | "grant" | "follow">): string {
  return hashOf({ steps, timeout, sandbox, detach });
}

/** Of a set of tool files, in whatever order. */
export function toolsHash(files: readonly ToolFile[]): string {
  const lines = files.map(({ path, mode, sha256, size }) =>
    JSON.stringify([path, mode & 0o777, sha256, size]),
  );
  return createHash("sha256").update(lines.sort().join("\n")).digest("hex");
}

interface Granted {
  opId: string;
  hash: string;
  scope: string;
  root: boolean;
  expires: number;
}

/** Seals a grant with the session's key; base64. */
export function sealGrant(key: Uint8Array, { opId, hash, scope, root, expires }: Granted): string {
  return createHmac("sha256", key)
    .update(JSON.stringify([opId, hash, scope, root, expires]))
    .digest("base64");
}

export function holdsGrant(key: Uint8Array, granted: Granted, mac: string): boolean {
  const right = Buffer.from(sealGrant(key, granted), "base64");
  const given = Buffer.from(mac, "base64");
  return right.length === given.length && timingSafeEqual(right, given);
}

function canonical(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(canonical).join(",")}]`;
  if (typeof value !== "object" || value === null) return JSON.stringify(value) ?? "null";
  const entries = Object.entries(value)
    .filter(([, inner]) => inner !== undefined)
    .sort(([a], [b]) => (a < b ? -1 : 1));
  return `{${entries.map(([key, inner]) => `${JSON.stringify(key)}:${canonical(inner)}`).join(",")}}`;
}
