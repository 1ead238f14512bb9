/** How much room things take on the disk. */
import { lstatSync, readdirSync } from "node:fs";
import { Pauses } from "../files/workspace.ts";

const blockBytes = 512;

/** Bytes of all that lies below, as `du` counts them, links not followed; what cannot be looked at counts as nothing. */
export async function bytesBelow(folder: string): Promise<number> {
  const pauses = new Pauses();
  const waiting = [Buffer.from(folder)];
  let total = 0;
  for (let path = waiting.pop(); path !== undefined; path = waiting.pop()) {
    try {
      const stat = lstatSync(path);
      total += stat.blocks * blockBytes;
      if (stat.isDirectory())
        for (const name of readdirSync(path, { encoding: "buffer" }))
          waiting.push(Buffer.concat([path, Buffer.from("/"), name]));
    } catch {
      // Has gone, or is somebody else's.
    }
    await pauses.take();
  }
  return total;
}
