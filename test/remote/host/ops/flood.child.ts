/** Runs, in the session in the folder `argv[2]`, a program that prints 1 GiB, followed by a reader that acknowledges nothing. Says, as JSON, how it was. */
import { createHash } from "node:crypto";
import { ended, Host, request, sh } from "./ground.ts";

const host = new Host(process.argv[2]!);
const operations = await host.open();
const before = process.memoryUsage.rss();
let peak = 0;
const look = setInterval(() => {
  peak = Math.max(peak, process.memoryUsage.rss());
}, 20);
const asked = request([sh("head -c 1073741824 /dev/zero")]);
await operations.start(asked);
operations.follow({ opId: asked.opId, from: {} });
const { status, code, streams } = await ended(operations, asked.opId);
clearInterval(look);
const hash = async (from: number) => {
  const piece = await operations.output({ opId: asked.opId, stream: "out", from, to: from + 1000 });
  return createHash("sha256").update(Buffer.from(piece.data, "base64")).digest("hex");
};
const [head, tail] = [await hash(0), await hash(streams.out! - 1000)];
console.log(
  JSON.stringify({ status, code, size: streams.out, peak: Math.ceil((peak - before) / 2 ** 20), head, tail }),
);
await operations.close();
