/** The content of an answer: as text where it is one, else as a file. */
import { closeSync, mkdirSync, openSync, rmSync, writeSync } from "node:fs";
import { basename, dirname } from "node:path";
import { decodeText, kindOf, parseContentType } from "./content.ts";
import { toMarkdown } from "./markdown.ts";
import { type Answer, explained } from "./request.ts";

export interface Limits {
  /** Bytes of a text that are looked at, decompressed. */
  text: number;
  /** Bytes of anything else that are kept. */
  file: number;
}

export type Content = { mime: string; bytes: number; whole: boolean } & (
  | { kind: "text"; text: string; title: string; note?: string }
  | { kind: "file"; path: string }
);

/**
 * @param raw HTML as it is
 * @param place where a file goes, from the name that its address has
 */
export async function load(
  answer: Answer,
  limits: Limits,
  raw: boolean,
  place: (name: string) => string,
): Promise<Content> {
  const { response, url } = answer;
  const type = parseContentType(response.headers.get("content-type"));
  const chunks = chunksOf(answer);
  try {
    const first = await chunks.next();
    const start = first.done ? new Uint8Array() : first.value;
    const kind = kindOf(type, start);
    const mime = type.mime || "no type given";
    if (kind === "binary") {
      const path = place(fileName(url, mime));
      return { kind: "file", mime, path, ...(await save(path, start, chunks, limits.file)) };
    }
    const { bytes, whole } = await collect(start, chunks, limits.text);
    const { text, note } = decodeText(bytes, type);
    const page = kind === "html" && !raw ? toMarkdown(text, url.href) : { title: "", text };
    return { kind: "text", mime, bytes: bytes.length, whole, ...page, ...(note && { note }) };
  } finally {
    await chunks.return(undefined);
  }
}

async function* chunksOf({ response, url, patience }: Answer): AsyncGenerator<Uint8Array> {
  const reader = response.body?.getReader();
  if (!reader) return;
  let size = 0;
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      size += value.length;
      if (value.length > 0) yield value;
    }
  } catch (error) {
    const reason = explained(error, url, patience);
    throw Object.assign(reason, { message: `${reason.message} (${size} bytes had come)` });
  } finally {
    await reader.cancel().catch(() => undefined);
  }
}

async function collect(
  start: Uint8Array,
  rest: AsyncGenerator<Uint8Array>,
  limit: number,
): Promise<{ bytes: Uint8Array; whole: boolean }> {
  const parts = [start];
  let size = start.length;
  while (size <= limit) {
    const next = await rest.next();
    if (next.done) return { bytes: Buffer.concat(parts), whole: true };
    parts.push(next.value);
    size += next.value.length;
  }
  return { bytes: Buffer.concat(parts).subarray(0, limit), whole: false };
}

/** A file that is too long is not kept in part: half an archive is of no use. */
async function save(
  path: string,
  start: Uint8Array,
  rest: AsyncGenerator<Uint8Array>,
  limit: number,
): Promise<{ bytes: number; whole: boolean }> {
  mkdirSync(dirname(path), { recursive: true, mode: 0o700 });
  const fd = openSync(path, "w", 0o600);
  let whole = false;
  let size = 0;
  try {
    for (let chunk: Uint8Array | undefined = start; chunk; ) {
      size += chunk.length;
      if (size > limit) break;
      for (let done = 0; done < chunk.length; ) done += writeSync(fd, chunk, done);
      const next: IteratorResult<Uint8Array> = await rest.next();
      whole = next.done === true;
      chunk = next.done ? undefined : next.value;
    }
  } finally {
    closeSync(fd);
    if (!whole) rmSync(path, { force: true });
  }
  return { bytes: size, whole };
}

/** From the address, with an extension from the type where it has none. */
function fileName(url: URL, mime: string): string {
  const last = basename(url.pathname)
    .replace(/%[\da-f]{2}/gi, "_")
    .replace(/[^\w.-]/g, "_")
    .replace(/^\.+/, "")
    .slice(-80);
  const name = last || "download";
  const extension = /\/(?:x-)?([a-z\d]{2,8})$/.exec(mime)?.[1];
  return name.includes(".") || !extension ? name : `${name}.${extension}`;
}
