import { writeAll } from "../../ninep/client/content.ts";
import type { Fid } from "../../ninep/client.ts";
import { ORDWR, OTRUNC, OWRITE } from "../../ninep/file.ts";
import { command } from "../program.ts";
import { readIn, writeOut } from "../stdio.ts";
import { type globals, withServer } from "./connection.ts";
import { copy } from "./read.ts";

const newline = 10;

const options = {
  append: { type: "boolean", short: "a", help: "write behind the end instead of replacing the content" },
  line: { type: "boolean", short: "l", help: "send every line by itself, as soon as it is there" },
} as const;

export const write = command<typeof options, typeof globals>({
  usage: "[-a] [-l] PATH",
  about:
    "Writes stdin to the file. What fits into one message is one write, so that a file which carries out what is written to it gets it whole;\n" +
    "to a file called ctl every line is a write of its own. The first one that fails ends it.",
  options,
  words: [1, 1],
  run({ values, words, globals }) {
    const path = words[0]!;
    const byLine = values.line ?? path.split("/").at(-1) === "ctl";
    return withServer(globals, async (client, signal) => {
      const fid = await client.openFile(path, values.append ? OWRITE : OWRITE | OTRUNC, signal);
      const start = values.append ? Number((await fid.stat(signal)).length) : 0;
      await (byLine ? sendLines(fid, start, signal) : send(fid, start, signal));
      // Some files act on what was written only now, and say here that they could not.
      await fid.clunk();
      return 0;
    });
  },
});

export const rdwr = command<Record<never, never>, typeof globals>({
  usage: "PATH",
  about:
    "Opens the file for both, writes stdin to it, and prints what can be read behind that: the answer of a file that answers.",
  options: {},
  words: [1, 1],
  run({ words, globals }) {
    return withServer(globals, async (client, signal) => {
      const fid = await client.openFile(words[0]!, ORDWR, signal);
      await copy(fid, await send(fid, 0, signal), writeOut, signal);
      await fid.clunk();
      return 0;
    });
  },
});

/** Sends stdin in full messages and what is left at its end; returns the offset behind it. */
async function send(fid: Fid, offset: number, signal: AbortSignal): Promise<number> {
  let held: Uint8Array[] = [];
  let size = 0;
  for (let chunk = await readIn(signal); chunk; chunk = await readIn(signal)) {
    held.push(chunk);
    size += chunk.length;
    if (size < fid.iounit) continue;
    const all = Buffer.concat(held);
    const full = all.length - (all.length % fid.iounit);
    offset = await writeAll(fid, all.subarray(0, full), offset, signal);
    held = [all.subarray(full)];
    size = all.length - full;
  }
  return size > 0 ? writeAll(fid, Buffer.concat(held), offset, signal) : offset;
}

async function sendLines(fid: Fid, offset: number, signal: AbortSignal): Promise<void> {
  let rest: Uint8Array = new Uint8Array();
  for (let chunk = await readIn(signal); chunk; chunk = await readIn(signal)) {
    rest = rest.length > 0 ? Buffer.concat([rest, chunk]) : chunk;
    for (let end = rest.indexOf(newline); end >= 0; end = rest.indexOf(newline)) {
      offset = await writeAll(fid, rest.subarray(0, end + 1), offset, signal);
      rest = rest.subarray(end + 1);
    }
  }
  if (rest.length > 0) await writeAll(fid, rest, offset, signal);
}
