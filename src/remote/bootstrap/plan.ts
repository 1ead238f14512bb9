/** What is to be sent, after what a host has said of itself in its `miss` line. */
import { delta } from "./delta.ts";
import { Cksum } from "./digest.ts";
import { border, type Codec, pack } from "./program.ts";
import type { Offer } from "./programs.ts";

/** The words of a `miss` line. */
export interface Miss {
  hash: string;
  codecs: Codec[];
  tool: string;
  place: string;
  /** The program lies there, whole. */
  here: boolean;
  /** The pack is needed. */
  pack: boolean;
  /** What is left of an upload that broke off. */
  part: { codec: Codec; bytes: number };
  /** Hashes of the chunks of an older program. */
  chunks: string[];
  /** Why folders were passed over, by the names of the places. */
  passed: [string, string][];
}

const keys = new Set("hash codecs tool place free here pack part old chunks".split(" "));

export function readMiss(words: readonly string[]): Miss {
  const pairs = words.map((word): [string, string] => {
    const at = word.indexOf("=");
    return [word.slice(0, at), word.slice(at + 1)];
  });
  const value = Object.fromEntries(pairs);
  const [codec, bytes] = (value.part ?? "none:0").split(":");
  return {
    hash: value.hash ?? "",
    codecs: list(value.codecs).filter((name) => name in rank) as Codec[],
    tool: value.tool ?? "",
    place: value.place ?? "",
    here: value.here === "yes",
    pack: value.pack === "yes",
    part: { codec: (codec ?? "none") as Codec, bytes: Number(bytes) || 0 },
    chunks: list(value.chunks),
    passed: pairs.filter(([key]) => !keys.has(key)),
  };
}

function list(text: string | undefined): string[] {
  return text ? text.split(",") : [];
}

const rank: Record<Codec, number> = { zstd: 0, gzip: 1, none: 2 };

export function bestCodec(codecs: readonly Codec[]): Codec {
  return [...codecs].sort((a, b) => rank[a] - rank[b])[0] ?? "none";
}

export interface Plan {
  /** The three lines for the script. */
  lines: string;
  /** Of the pack with the C library; nothing if none is needed. */
  library?: Uint8Array;
  /** Bytes of the program that will be sent, and they themselves, piece by piece. */
  length: number;
  pieces(): AsyncIterable<Uint8Array>;
}

export async function plan(offer: Offer, miss: Miss): Promise<Plan> {
  const codec = bestCodec(miss.codecs);
  const body = miss.here
    ? nothing
    : ((await upgrade(offer, miss, codec)) ?? (await whole(offer, miss, codec)));
  const library = miss.pack && offer.pack ? await pack(codec, offer.pack.content) : undefined;
  const sizes = offer.pack?.files.map(({ size }) => size).join(",") ?? "-";
  const weak = miss.tool === "cksum";
  const sums = weak
    ? [await offer.program.cksum(), offer.pack ? new Cksum().update(offer.pack.content).digest() : "-"]
    : ["-", "-"];
  return {
    ...body,
    library,
    lines:
      `${body.line}\n` +
      `${library?.length ?? 0} ${codec} ${sizes} ${sums.join(" ")}\n` +
      `${offer.answers}\n`,
  };
}

type Body = Pick<Plan, "length" | "pieces"> & { line: string };

const nothing: Body = { line: "keep none 0 0 -", length: 0, pieces: async function* () {} };

async function upgrade({ program }: Offer, miss: Miss, codec: Codec): Promise<Body | undefined> {
  if (miss.chunks.length === 0) return undefined;
  const found = delta(miss.chunks, program.described.chunks);
  if (!found) return undefined;
  const chunks: Uint8Array[] = [];
  for (const index of found.send) chunks.push(await program.chunk(index));
  const bytes = await pack(codec, Buffer.concat(chunks));
  return {
    line: `delta ${codec} 0 ${bytes.length} ${found.recipe}`,
    length: bytes.length,
    pieces: async function* () {
      yield bytes;
    },
  };
}

async function whole({ program }: Offer, miss: Miss, best: Codec): Promise<Body> {
  const resume = miss.part.bytes > 0 && miss.codecs.includes(miss.part.codec);
  const codec = resume ? miss.part.codec : best;
  const { sizes, frame } = await program.load(codec);
  const start = resume ? border(sizes, miss.part.bytes) : { keep: 0, frame: 0 };
  const length = sizes.slice(start.frame).reduce((sum, size) => sum + size, 0);
  return {
    line: `full ${codec} ${start.keep} ${length} -`,
    length,
    pieces: async function* () {
      for (let index = start.frame; index < sizes.length; index++) yield await frame(index);
    },
  };
}
