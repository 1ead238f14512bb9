/** Tools that are brought to a host, over a link that breaks meanwhile. */
import { afterEach, beforeEach, expect, test } from "bun:test";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { LocalTools } from "../../../src/remote/client/tools/local.ts";
import { syncTools } from "../../../src/remote/client/tools/sync.ts";
import { ToolStore } from "../../../src/remote/host/tools/methods.ts";
import { pieceBytes } from "../../../src/remote/protocol/limits.ts";
import type { Peer } from "../../../src/remote/protocol/peer.ts";

let top: string;
let folder: string;
beforeEach(() => {
  top = mkdtempSync(join(tmpdir(), "ollie-sync-"));
  folder = mkdtempSync(join(top, "tools-"));
});
afterEach(() => rmSync(top, { recursive: true, force: true }));

/** The host's end without a line: its answers, until after so many pieces there is none any more. */
function hostWith(pieces = Number.POSITIVE_INFINITY) {
  const host = new ToolStore(top, () => new Set());
  const offsets: number[] = [];
  const peer = {
    async request(method: string, params: never) {
      if (method === "tools.manifest") return host.manifest(params);
      if (method === "tools.activate") return host.activate(params);
      const { off } = params as { off: number };
      if (off >= pieces * pieceBytes) throw new Error("the line is broken");
      offsets.push(off);
      return host.put(params);
    },
  } as unknown as Peer;
  return { peer, offsets };
}

test("a file whose upload broke off goes on where it was", async () => {
  const content = Buffer.alloc(3 * pieceBytes + 5, "tool ");
  writeFileSync(join(folder, "big"), content, { mode: 0o755 });
  const manifest = await new LocalTools([folder]).manifest();
  const options = { limit: 1000, signal: new AbortController().signal, onProgress() {} };
  await expect(syncTools(hostWith(2).peer, manifest, options)).rejects.toThrow("the line is broken");

  const { peer, offsets } = hostWith();
  const done: (number | undefined)[] = [];
  await syncTools(peer, manifest, { ...options, onProgress: (progress) => done.push(progress.done) });
  expect(offsets).toEqual([2 * pieceBytes, 3 * pieceBytes]);
  expect([done[0], done.at(-1)]).toEqual([2 * pieceBytes, content.length]);
});
