import { pieces } from "../../ninep/client/content.ts";
import type { Client, Fid } from "../../ninep/client.ts";
import { NineError, phrase } from "../../ninep/errors.ts";
import { OREAD } from "../../ninep/file.ts";
import { command, WrongUse } from "../program.ts";
import { colours, toTerminal, writeOut } from "../stdio.ts";
import { type globals, withServer } from "./connection.ts";
import { MarkerFilter, terminalStyle } from "./markers.ts";
import { Visible } from "./visible.ts";

/** Milliseconds between looks at a file that is followed: short while it grows, longer while it rests. */
const shortest = 25;
const longest = 250;

const options = {
  follow: { type: "boolean", short: "f", help: "go on as the file grows" },
  loop: {
    type: "boolean",
    short: "l",
    help: "begin again at each end, for files that wait for a change; others: print them when they have changed",
  },
  offset: {
    type: "string",
    short: "o",
    value: "BYTES",
    help: "begin there; --offset=-BYTES: so far before the end, with the next full line",
  },
  text: {
    type: "boolean",
    short: "t",
    help: "leave out lines that begin with [[[, the markers of a chat; a terminal shows blocks in bold and dim",
  },
} as const;

export const read = command<typeof options, typeof globals>({
  usage: "[-f | -l] [-o BYTES] [-t] PATH …",
  about:
    "Prints files as they come: one that waits for something is asked once and prints what it has when it has it. Several are all opened\n" +
    "first; -f, -l and -o are about the last. -f and -l go on until the file is gone, the connection is lost or Ctrl-C.",
  options,
  words: [1, 16],
  async run({ values, words, globals }) {
    if (values.follow && values.loop) throw new WrongUse("-f and -l exclude each other");
    const offset = Number(values.offset ?? 0);
    if (!Number.isSafeInteger(offset)) throw new WrongUse(`${values.offset} is no number of bytes`);
    const style = colours() ? terminalStyle : undefined;
    const filter = values.text ? new MarkerFilter(style) : undefined;
    const visible = toTerminal() ? new Visible() : undefined;
    const print: Print = (bytes) => {
      const harmless = visible ? visible.pass(bytes) : bytes;
      return writeOut(filter ? filter.pass(harmless) : harmless);
    };
    const done = withServer(globals, async (client, signal) => {
      const fids: Fid[] = [];
      for (const path of words) fids.push(await openFile(client, path, signal));
      const last = fids.pop()!;
      // A text that was generated stays what it is for as long as it is open. A file like `statewait` notes what its reader knows and
      // must be kept open, or a change between two reads would be missed.
      const reopen = async (fid: Fid) => {
        const path = words.at(-1)!;
        if (path.endsWith("wait")) return fid;
        await fid.clunk();
        return openFile(client, path, signal);
      };
      for (const fid of fids) await copy(fid, 0, print, signal);
      const from = offset < 0 ? await lineBeforeEnd(last, -offset, signal) : offset;
      if (values.loop) return readAgain(last, from, print, reopen, signal);
      const end = await copy(last, from, print, signal);
      if (values.follow) await follow(last, end, print, signal);
      return 0;
    });
    // It may have ended within a block.
    return filter?.style ? done.finally(() => writeOut(terminalStyle(""))) : done;
  },
});

type Print = (bytes: Uint8Array) => Promise<void>;

async function openFile(client: Client, path: string, signal: AbortSignal): Promise<Fid> {
  const fid = await client.openFile(path, OREAD, signal);
  if (fid.isDirectory) throw new NineError(phrase.isDir, "ollie-9p ls lists it");
  return fid;
}

/** Prints from `offset` to the end and returns where that is. */
export async function copy(fid: Fid, offset: number, print: Print, signal: AbortSignal): Promise<number> {
  for await (const piece of pieces(fid, offset, signal)) {
    offset += piece.length;
    await print(piece);
  }
  return offset;
}

/** Where the first full line within the last `bytes` begins; 0 if the file is no longer than that. */
async function lineBeforeEnd(fid: Fid, bytes: number, signal: AbortSignal): Promise<number> {
  const start = Number((await fid.stat(signal)).length) - bytes;
  if (start <= 0) return 0;
  // From the byte before, in case that one ends a line.
  const piece = await fid.read(start - 1, Math.min(bytes + 1, fid.iounit), signal);
  return start + piece.indexOf("\n");
}

async function follow(fid: Fid, offset: number, print: Print, signal: AbortSignal): Promise<never> {
  for (let pause = shortest; ; pause = Math.min(pause * 1.3, longest)) {
    await Bun.sleep(pause);
    signal.throwIfAborted();
    const end = await copy(fid, offset, print, signal);
    if (end > offset) pause = shortest;
    offset = end;
  }
}

/**
 * Prints what the file has, again and again. What comes at once and is the same again comes from a file that has nothing to wait for: it
 * is looked at after a pause, and printed when it is another.
 */
async function readAgain(
  fid: Fid,
  offset: number,
  print: Print,
  anew: (fid: Fid) => Promise<Fid>,
  signal: AbortSignal,
): Promise<number> {
  for (let last: Buffer = Buffer.alloc(0); ; ) {
    const asked = performance.now();
    const text = await whole(fid, offset, signal);
    if (text.length === 0) return 0;
    const waited = performance.now() - asked >= shortest;
    if (waited || !text.equals(last)) await print(text);
    else {
      await Bun.sleep(longest);
      fid = await anew(fid);
    }
    last = text;
  }
}

async function whole(fid: Fid, offset: number, signal: AbortSignal): Promise<Buffer> {
  const all = [await fid.read(offset, fid.iounit, signal)];
  // One that waits for changes is not asked again before its text has been printed.
  if (all[0]!.length === fid.iounit)
    await copy(fid, offset + fid.iounit, async (bytes) => void all.push(Buffer.from(bytes)), signal);
  return Buffer.concat(all);
}
