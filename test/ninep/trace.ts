/**
 * Conversations as text, one message a line, in the manner of Plan 9's tools:
 *
 *     Twalk fid 0 newfid 1 wname a b
 *     Rwalk wqid 80.0.1 0.2.3
 *
 * The tag is 1, or NOTAG for Tversion, unless the line begins with `tag N`. Strings with blanks are JSON. A qid is TYPE.VERS.PATH with
 * the type in hex. A stat is written as `name=a mode=644 …`, with what is not named "don't touch". An expected line that ends in "..."
 * says only how the reply begins.
 */
import { expect } from "bun:test";
import * as m from "../../src/ninep/messages.ts";
import type { Wire } from "./wire.ts";

const numbers = new Set(["msize", "fid", "newfid", "afid", "count", "iounit", "oldtag"]);
const named = m as unknown as Record<string, number>;
const names = new Map(Object.entries(m).map(([name, value]) => [value as number, name]));

/** Sends the T lines and compares what comes back with the R lines; nothing more may come. */
export async function converse(wire: Wire, trace: string): Promise<void> {
  const expected = trace
    .trim()
    .split("\n")
    .map((line) => line.trim().replace(/\s+/g, " "))
    .filter((line) => line !== "" && !line.startsWith("#"));
  const seen: string[] = [];
  for (const line of expected) {
    if (/^(tag \d+ )?T/.test(line)) {
      wire.send(parse(line));
      seen.push(line);
    } else {
      const reply = format(await wire.next());
      const same = line.endsWith("...") && reply.startsWith(line.slice(0, -3).trimEnd());
      seen.push(same ? line : reply);
    }
  }
  expect(seen).toEqual(expected);
  expect((await wire.rest()).map(format)).toEqual([]);
}

/** One T line as a message. */
export function parse(line: string): m.TMessage {
  const words = line.match(/"(?:[^"\\]|\\.)*"|\S+/g)!;
  let tag: number | undefined;
  if (words[0] === "tag") tag = Number(words.splice(0, 2)[1]);
  const type = named[words.shift()!]!;
  const fields: Record<string, unknown> = { type, tag: tag ?? (type === m.Tversion ? m.NOTAG : 1) };
  while (words.length > 0) {
    const key = words.shift()!;
    if (key === "wname") fields.wname = words.splice(0).map(text);
    else if (key === "stat") fields.stat = { ...m.dontTouch, ...stat(words.splice(0)) };
    else fields[key] = value(type, key, words.shift()!);
  }
  if (type === m.Twalk) fields.wname ??= [];
  return fields as unknown as m.TMessage;
}

function value(type: number, key: string, word: string): unknown {
  if (word === "NOFID") return m.NOFID;
  if (key === "data") return Buffer.from(text(word));
  if (key === "offset") return Number(word) <= Number.MAX_SAFE_INTEGER ? Number(word) : BigInt(word);
  if (key === "perm" || key === "mode")
    return Number.parseInt(word, key === "mode" && type !== m.Twstat ? 16 : 8);
  return numbers.has(key) ? Number(word) : text(word);
}

function text(word: string): string {
  return word.startsWith('"') ? JSON.parse(word) : word;
}

function stat(words: string[]): Partial<m.Dir> {
  return Object.fromEntries(
    words.map((word) => {
      const [key, rest] = word.split("=", 2) as [string, string];
      if (key === "mode") return [key, Number.parseInt(rest, 8)];
      return [key, ["name", "uid", "gid", "muid"].includes(key) ? rest : Number(rest)];
    }),
  );
}

/** A reply as a line. */
export function format(message: m.Message): string {
  const { type, tag, ...fields } = message;
  const prefix = tag === 1 || tag === m.NOTAG ? "" : `tag ${tag} `;
  const parts = Object.entries(fields).map(([key, field]) => `${key} ${show(key, field)}`.trimEnd());
  return [prefix + names.get(type), ...parts].join(" ");
}

function show(key: string, field: unknown): string {
  if (key === "wqid") return (field as m.WireQid[]).map(qid).join(" ");
  if (key === "qid") return qid(field as m.WireQid);
  if (key === "data") return quoted(Buffer.from(field as Uint8Array).toString());
  if (key === "stat") return showStat(field as m.Dir);
  return typeof field === "string" ? quoted(field) : String(field);
}

function quoted(text: string): string {
  const json = JSON.stringify(text);
  return /^\S+$/.test(text) && json === `"${text}"` ? text : json;
}

export function qid({ type, vers, path }: m.WireQid): string {
  return `${type.toString(16)}.${vers}.${path}`;
}

/** Without the times, which no trace can know. */
export function showStat(dir: m.Dir): string {
  return `name=${dir.name} qid=${qid(dir.qid)} mode=${dir.mode.toString(8)} length=${dir.length} uid=${dir.uid} gid=${dir.gid} muid=${dir.muid}`;
}
