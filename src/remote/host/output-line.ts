/** The notification `output` as a line, newline included. */
import type { OpOutput } from "../protocol/operation.ts";

/** As `JSON.stringify` would make it, without its copies of what may be much: base64 needs no escapes. */
export function outputLine({ data, ...about }: OpOutput): Buffer {
  const head = JSON.stringify({ jsonrpc: "2.0", method: "output", params: about });
  const [begin, end] = [`${head.slice(0, -2)},"data":`, "}}\n"];
  if (about.stream === "text") return Buffer.from(`${begin}${JSON.stringify(data)}${end}`);
  const line = Buffer.allocUnsafeSlow(Buffer.byteLength(begin) + data.length + end.length + 2);
  let at = line.write(`${begin}"`);
  at += line.write(data, at, "latin1");
  line.write(`"${end}`, at);
  return line;
}
