/** The pack with a C library for hosts whose own Bun cannot use; `src/build/libc.ts` makes it. */
import { readFileSync } from "node:fs";
import { z } from "zod";
import { coded } from "../protocol/errors.ts";
import { sha256 } from "./digest.ts";

const head = z.object({
  loader: z.string(),
  from: z.string(),
  files: z.array(z.object({ name: z.string().regex(/^[\w.+-]+$/), size: z.int(), sha256: z.string() })),
});

export interface LibcPack {
  /** SHA-256 of the files' contents, one after another: what a host can tell of what lies there. */
  digest: string;
  files: { name: string; size: number }[];
  content: Uint8Array;
}

/**
 * @param pinned SHA-256 of the file, where a manifest has it
 * @throws CodedFault "boot.hash"
 */
export function readLibcPack(file: string, pinned?: string): LibcPack {
  const bytes = readFileSync(file);
  if (pinned !== undefined && sha256(bytes) !== pinned)
    throw coded("boot.hash", `${file} is not the one that manifest.json lists`);
  const end = bytes.indexOf(10);
  try {
    const { files } = head.parse(JSON.parse(bytes.toString("utf8", 0, end)));
    const content = new Uint8Array(bytes.subarray(end + 1));
    const total = files.reduce((sum, { size }) => sum + size, 0);
    if (total !== content.length) throw new Error(`${content.length} bytes in the place of ${total}`);
    return { digest: sha256(content), files, content };
  } catch (error) {
    throw coded("boot.hash", `${file} is damaged: ${(error as Error).message.split("\n")[0]}`);
  }
}
