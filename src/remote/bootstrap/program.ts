/** One ollie-remote, as it is sent: in frames that are packed one by one, from a file that holds it as it is or packed already. */
import { createHash } from "node:crypto";
import { type FileHandle, open } from "node:fs/promises";
import { promisify } from "node:util";
import zlib from "node:zlib";
import { coded } from "../protocol/errors.ts";
import { chunkBytes, type Described, frameBytes } from "../protocol/manifest.ts";
import { Cksum, sha256 } from "./digest.ts";

const gzip = promisify(zlib.gzip) as (bytes: Uint8Array, options: zlib.ZlibOptions) => Promise<Buffer>;

export type Codec = "zstd" | "gzip" | "none";

interface Files {
  /** Absolute paths of those that are there. */
  raw?: string;
  zstd?: string;
  gzip?: string;
}

/** A program packed: the bytes of each frame, and the frames themselves. */
export interface Load {
  sizes: number[];
  frame(index: number): Promise<Uint8Array>;
}

export class Program {
  readonly #frames: number;
  readonly #verified = new Set<string>();

  /** @param described by a manifest, or by having looked at the file itself (`describe`) */
  constructor(
    readonly files: Files,
    readonly described: Described,
  ) {
    this.#frames = Math.ceil(described.size / frameBytes);
  }

  /** Packed with what the host can unpack; from the file where it lies here packed so. */
  async load(codec: Codec): Promise<Load> {
    if (codec === "none") {
      const { size } = this.described;
      const sizes = Array.from({ length: this.#frames }, (_, index) =>
        Math.min(frameBytes, size - index * frameBytes),
      );
      return { sizes, frame: (index) => this.#raw(index) };
    }
    const ready = this.described[codec];
    if (this.files[codec] !== undefined && ready)
      return { sizes: ready.frames, frame: async (index) => (await this.#packed(codec, index))! };
    const frames: Uint8Array[] = [];
    await inTurns(this.#frames, async (index) => {
      frames[index] = await pack(codec, await this.#raw(index));
    });
    return { sizes: frames.map(({ length }) => length), frame: async (index) => frames[index]! };
  }

  async chunk(index: number): Promise<Uint8Array> {
    const frame = await this.#raw(Math.floor((index * chunkBytes) / frameBytes));
    const from = (index * chunkBytes) % frameBytes;
    return frame.subarray(from, from + chunkBytes);
  }

  async cksum(): Promise<string> {
    const sum = new Cksum();
    for (let index = 0; index < this.#frames; index++) sum.update(await this.#raw(index));
    return sum.digest();
  }

  async #packed(codec: "zstd" | "gzip", index: number): Promise<Uint8Array | undefined> {
    const file = this.files[codec];
    const packed = this.described[codec];
    if (file === undefined || packed === undefined) return undefined;
    await this.#verify(file, packed.sha256);
    return readAt(file, packed.frames.slice(0, index).reduce(plus, 0), packed.frames[index]!);
  }

  async #raw(index: number): Promise<Uint8Array> {
    const { raw } = this.files;
    if (raw !== undefined) {
      await this.#verify(raw, this.described.sha256);
      const from = index * frameBytes;
      return readAt(raw, from, Math.min(frameBytes, this.described.size - from));
    }
    const zstd = await this.#packed("zstd", index);
    if (zstd) return Bun.zstdDecompress(zstd);
    return Bun.gunzipSync(new Uint8Array((await this.#packed("gzip", index))!));
  }

  /** Before anything of a file is sent, and once: what is pinned, not what happens to lie here. */
  async #verify(file: string, pinned: string): Promise<void> {
    if (this.#verified.has(file)) return;
    const found = await hashOfFile(file);
    if (found !== pinned)
      throw coded("boot.hash", `${file} is not what it should be: SHA-256 ${found}, not ${pinned}`, {
        hint: "install or build ollie again",
      });
    this.#verified.add(file);
  }
}

const plus = (a: number, b: number) => a + b;

export async function pack(codec: Codec, bytes: Uint8Array): Promise<Uint8Array> {
  if (codec === "zstd") return Bun.zstdCompress(new Uint8Array(bytes), { level: 3 });
  if (codec === "gzip") return gzip(bytes, { level: 3 });
  return bytes;
}

/** Bun compresses in threads of its own; a few at a time keep them busy. */
async function inTurns(count: number, work: (index: number) => Promise<void>): Promise<void> {
  let next = 0;
  const worker = async () => {
    while (next < count) await work(next++);
  };
  await Promise.all(Array.from({ length: Math.min(4, count) }, worker));
}

/** The largest border between frames that lies within `bytes` of the packed program, and the number of the frame behind it. */
export function border(sizes: readonly number[], bytes: number): { keep: number; frame: number } {
  let keep = 0;
  for (const [frame, size] of sizes.entries()) {
    if (keep + size > bytes) return { keep, frame };
    keep += size;
  }
  return { keep, frame: sizes.length };
}

async function hashOfFile(file: string): Promise<string> {
  const whole = createHash("sha256");
  const handle = await open(file);
  try {
    for (let at = 0; ; at += chunkBytes) {
      const chunk = await readUpTo(handle, at, chunkBytes);
      whole.update(chunk);
      if (chunk.length < chunkBytes) return whole.digest("hex");
    }
  } finally {
    await handle.close();
  }
}

/** What a manifest would say of a program that lies here as it is. */
export async function describe(file: string): Promise<Described> {
  const whole = createHash("sha256");
  const chunks: string[] = [];
  let size = 0;
  const handle = await open(file);
  try {
    for (;;) {
      const chunk = await readUpTo(handle, size, chunkBytes);
      if (chunk.length === 0) break;
      whole.update(chunk);
      chunks.push(sha256(chunk));
      size += chunk.length;
      if (chunk.length < chunkBytes) break;
    }
  } finally {
    await handle.close();
  }
  return { sha256: whole.digest("hex"), size, chunks };
}

async function readAt(file: string, from: number, length: number): Promise<Uint8Array> {
  const handle = await open(file);
  try {
    const bytes = await readUpTo(handle, from, length);
    if (bytes.length < length) throw coded("boot.short", `${file} has become shorter while it was sent`);
    return bytes;
  } finally {
    await handle.close();
  }
}

async function readUpTo(handle: FileHandle, from: number, length: number): Promise<Uint8Array> {
  const bytes = new Uint8Array(length);
  let got = 0;
  while (got < length) {
    const { bytesRead } = await handle.read(bytes, got, length - got, from + got);
    if (bytesRead === 0) break;
    got += bytesRead;
  }
  return bytes.subarray(0, got);
}
