import { pieces } from "../../ninep/client/content.ts";
import type { Fid } from "../../ninep/client.ts";
import { NineError, phrase } from "../../ninep/errors.ts";
import { OREAD } from "../../ninep/file.ts";
import { command, WrongUse } from "../program.ts";
import { writeOut } from "../stdio.ts";
import { type globals, withServer } from "./connection.ts";

/** Milliseconds between looks at a file that is followed: short while it grows, longer while it rests. */
const shortest = 25;
const longest = 250;

const options = {
  follow: { type: "boolean", short: "f", help: "go on as the file grows" },
  loop: {
    type: "boolean",
    short: "l",
    help: "read again from the start at each end, for files that wait for a change",
  },
  offset: { type: "string", short: "o", value: "BYTES", help: "begin there" },
} as const;

export const read = command<typeof options, typeof globals>({
  usage: "[-f | -l] [-o BYTES] PATH",
  about:
    "Prints the file as it comes: a file that waits for something is asked once and prints what it has when it has it.\n" +
    "-f and -l go on until the file is gone, the connection is lost or Ctrl-C.",
  options,
  words: [1, 1],
  async run({ values, words, globals }) {
    const offset = values.offset === undefined ? 0 : Number(values.offset);
    if (!Number.isSafeInteger(offset) || offset < 0)
      throw new WrongUse(`${values.offset} is no number of bytes`);
    if (values.follow && values.loop) throw new WrongUse("-f and -l exclude each other");
    return withServer(globals, async (client, signal) => {
      const fid = await client.openFile(words[0]!, OREAD, signal);
      if (fid.isDirectory) throw new NineError(phrase.isDir, "ollie-9p ls lists it");
      if (values.loop) return readAgain(fid, offset, signal);
      const end = await copy(fid, offset, signal);
      if (values.follow) await follow(fid, end, signal);
      await fid.clunk();
      return 0;
    });
  },
});

/** Prints from `offset` to the end and returns where that is. */
export async function copy(fid: Fid, offset: number, signal: AbortSignal): Promise<number> {
  for await (const piece of pieces(fid, offset, signal)) {
    offset += piece.length;
    await writeOut(piece);
  }
  return offset;
}

async function follow(fid: Fid, offset: number, signal: AbortSignal): Promise<never> {
  for (let pause = shortest; ; pause = Math.min(pause * 1.3, longest)) {
    await Bun.sleep(pause);
    signal.throwIfAborted();
    const end = await copy(fid, offset, signal);
    if (end > offset) pause = shortest;
    offset = end;
  }
}

/** On one fid, so that a file which notes what its reader knows (`statewait`) misses no change between two reads. */
async function readAgain(fid: Fid, offset: number, signal: AbortSignal): Promise<number> {
  for (;;) {
    const first = await fid.read(offset, fid.iounit, signal);
    if (first.length === 0) return 0;
    await writeOut(first);
    if (first.length === fid.iounit) await copy(fid, offset + first.length, signal);
  }
}
