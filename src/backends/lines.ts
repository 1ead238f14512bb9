/** Lines and server-sent events out of a body's bytes, wherever the network has cut it. */

/** A line longer than this (characters) is no answer of a model. */
const maxLine = 32 * 1024 * 1024;

/**
 * Lines without their ends, which may be LF, CRLF or CR. A character split over two chunks stays whole. The last line need not have an
 * end.
 */
export async function* lines(body: AsyncIterable<Uint8Array>): AsyncGenerator<string> {
  const decoder = new TextDecoder();
  let rest = "";
  for await (const chunk of body) {
    rest += decoder.decode(chunk, { stream: true });
    const found = rest.split(/\r\n|\n|\r(?!$)/);
    // A CR at the very end may be the first half of a CRLF.
    rest = found.pop()!;
    yield* found;
    if (rest.length > maxLine) throw new Error("a line without end");
  }
  rest += decoder.decode();
  if (rest.endsWith("\r")) rest = rest.slice(0, -1);
  if (rest !== "") yield rest;
}

export interface ServerEvent {
  /** The `event:` field, or "". */
  name: string;
  data: string;
}

/**
 * Server-sent events (WHATWG HTML 9.2) that carry data; comments are dropped. An event that lacks its blank line at the end of the body
 * counts, because servers forget it.
 */
export async function* serverEvents(body: AsyncIterable<Uint8Array>): AsyncGenerator<ServerEvent> {
  let name = "";
  let data: string[] = [];
  for await (const line of lines(body)) {
    if (line === "") {
      if (data.length > 0) yield { name, data: data.join("\n") };
      name = "";
      data = [];
      continue;
    }
    const [, field, value] = /^([^:]*)(?:: ?(.*))?$/s.exec(line)!;
    if (field === "data") data.push(value ?? "");
    else if (field === "event") name = value ?? "";
  }
  if (data.length > 0) yield { name, data: data.join("\n") };
}
