/** Whole contents through an open fid. */
import type { Fid } from "./fid.ts";

/** Reads under way at once, where the length says that there is something to read. */
const ahead = 4;

/**
 * The content from `offset` to the end of the file, in the pieces in which it comes. Reads ahead only within the length that the server
 * states and only while every read comes back full: a file that blocks is asked for one piece at a time.
 */
export async function* pieces(fid: Fid, offset = 0, signal?: AbortSignal): AsyncGenerator<Buffer, void> {
  let piece = await fid.read(offset, fid.iounit, signal);
  let full = piece.length === fid.iounit;
  yield piece;
  offset += piece.length;
  if (full) {
    const length = Number((await fid.stat(signal)).length);
    const reads: Promise<Buffer>[] = [];
    let next = offset;
    while (full && offset < length) {
      while (reads.length < ahead && next < length) {
        const read = fid.read(next, fid.iounit, signal);
        // One whose turn never comes may fail unheard.
        read.catch(() => {});
        reads.push(read);
        next += fid.iounit;
      }
      piece = await reads.shift()!;
      full = piece.length === fid.iounit;
      offset += piece.length;
      yield piece;
    }
  }
  while (piece.length > 0) {
    piece = await fid.read(offset, fid.iounit, signal);
    offset += piece.length;
    yield piece;
  }
}

/** Writes all of it, one request after the other, and returns the offset behind it. */
export async function writeAll(
  fid: Fid,
  data: Uint8Array,
  offset = 0,
  signal?: AbortSignal,
): Promise<number> {
  for (let at = 0; at < data.length; ) {
    at += await fid.write(offset + at, data.subarray(at), signal);
  }
  return offset + data.length;
}
