/** Brings the tools of this machine to a host: only what it does not have. */
import { open } from "node:fs/promises";
import type { Progress } from "../../bootstrap/bootstrap.ts";
import { coded } from "../../protocol/errors.ts";
import { pieceBytes } from "../../protocol/limits.ts";
import type { Peer } from "../../protocol/peer.ts";
import { toolsMissing } from "../../protocol/tools.ts";
import type { Manifest } from "./local.ts";

/** Pieces that are under way without an answer: enough to keep a long line busy, few enough that other requests come through. */
const inFlight = 8;

export interface SyncOptions {
  onProgress(progress: Progress): void;
  signal: AbortSignal;
  /** Milliseconds for the answer of one request. */
  limit: number;
}

/**
 * When it resolves the host has all files of the manifest, and has put them together.
 * @throws CodedFault
 */
export async function syncTools(peer: Peer, manifest: Manifest, options: SyncOptions): Promise<void> {
  const { limit, signal } = options;
  const { hash, files } = manifest;
  const asked = { schema: toolsMissing, limit, signal };
  const { missing, begun } = await peer.request("tools.manifest", { hash, files }, asked);
  const sizes = new Map(files.map(({ sha256, size }) => [sha256, size]));
  const total = missing.reduce((sum, sha256) => sum + (sizes.get(sha256) ?? 0), 0);
  const start = (sha256: string) => startOf(begun[sha256] ?? 0, sizes.get(sha256) ?? 0);
  let done = missing.reduce((sum, sha256) => sum + start(sha256), 0);
  const tell = () => options.onProgress({ doing: "sending tools", done, total });
  if (total > 0) tell();
  const window: Promise<unknown>[] = [];
  for (const sha256 of missing) {
    const source = manifest.sources.get(sha256);
    if (!source)
      throw coded("proto.answer", `the host asks for a tool file that it was not offered: ${sha256}`);
    for await (const piece of pieces(source, sha256, start(sha256))) {
      const sent = peer.request("blob.put", piece.params, { limit, signal });
      // Who waits for it comes later; it may have failed by then.
      sent.catch(() => {});
      window.push(sent);
      if (window.length >= inFlight) await window.shift();
      done += piece.bytes;
      tell();
    }
  }
  await Promise.all(window);
  await peer.request("tools.activate", { hash }, { limit, signal });
}

/** Where to go on with a file of which the host has `begun` bytes; more than the file has are none of it. */
function startOf(begun: number, size: number): number {
  return begun <= size ? begun : 0;
}

async function* pieces(source: string, sha256: string, start: number) {
  const file = await open(source, "r");
  try {
    const { size } = await file.stat();
    for (let off = start; ; ) {
      const buffer = Buffer.alloc(Math.min(pieceBytes, Math.max(size - off, 0)));
      const { bytesRead } = await file.read(buffer, 0, buffer.length, off);
      const data = buffer.subarray(0, bytesRead).toString("base64");
      const last = off + bytesRead >= size || bytesRead === 0;
      yield { params: { sha256, off, data, last }, bytes: bytesRead };
      if (last) return;
      off += bytesRead;
    }
  } finally {
    await file.close();
  }
}
