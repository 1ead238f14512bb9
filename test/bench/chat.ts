/** Reading a long chat. */
import { appendFileSync } from "node:fs";
import { join } from "node:path";
import { type Figure, median } from "./figure.ts";
import { BenchServer } from "./server.ts";

const length = 100 * 2 ** 20;

export async function chat(): Promise<Figure[]> {
  const server = new BenchServer();
  try {
    const first = await server.start();
    await first.client.writeFile("session/new", "name=c\n");
    first.client.close();
    await server.stop();
    const block = `[[[assistant]]]\n${"all work and no play\n".repeat(50_000)}[[[end]]]\n`;
    const file = join(server.folder, ".local/state/ollie/sessions/c/agents/default/chat");
    for (let written = 0; written < length; written += block.length) appendFileSync(file, block);
    const { client } = await server.start();
    const rates: number[] = [];
    for (let run = 0; run < 5; run++) {
      const began = performance.now();
      let bytes = 0;
      for await (const piece of client.readStream("s/c/chat")) bytes += piece.length;
      if (bytes < length) throw new Error(`only ${bytes} bytes came`);
      rates.push(bytes / 1e3 / (performance.now() - began));
    }
    client.close();
    return [{ name: "reading a chat of 100 MB", value: median(rates), unit: "MB/s", least: 500 }];
  } finally {
    await server.remove();
  }
}
