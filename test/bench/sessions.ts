/** Thousands of idle sessions: what each takes up, and how fast everybody who waits for one is woken. */
import type { Client, Fid } from "../../src/ninep/client.ts";
import { OREAD } from "../../src/ninep/file.ts";
import type { Figure } from "./figure.ts";
import { BenchServer } from "./server.ts";

const count = 5000;

export async function sessions(): Promise<Figure[]> {
  const server = new BenchServer();
  try {
    const { client } = await server.start();
    await Bun.sleep(500);
    const before = server.memory();
    const names = Array.from({ length: count }, (_, i) => `s${i}`);
    const began = performance.now();
    await inParallel(names, 64, (name) => client.writeFile("session/new", `name=${name}\n`));
    const creating = performance.now() - began;
    await Bun.sleep(2000);
    const each = (server.memory() - before) / count;
    const waking = await wake(client, names[0]!);
    client.close();
    return [
      { name: `memory for each of ${count} idle sessions`, value: each / 1000, unit: "kB", most: 100 },
      { name: "sessions created in a second", value: (count * 1000) / creating, unit: "/s" },
      { name: `${count} statewait readers woken`, value: waking, unit: "ms", most: 250 },
    ];
  } finally {
    await server.remove();
  }
}

/** Milliseconds from a prompt to the answer of the last of the readers that wait for the same agent. */
async function wake(client: Client, name: string): Promise<number> {
  const path = `session/${name}/agent/default`;
  const waiting: Fid[] = await inParallel(Array.from({ length: count }), 64, () =>
    client.openFile(`${path}/statewait`, OREAD),
  );
  const answers = Promise.all(waiting.map((fid) => fid.read(0, 100)));
  await client.readText("version");
  const began = performance.now();
  const prompt = client.writeFile(`${path}/prompt`, "go");
  await answers;
  const took = performance.now() - began;
  await prompt;
  await inParallel(waiting, 64, (fid) => fid.clunk());
  return took;
}

async function inParallel<T, R>(items: T[], lanes: number, work: (item: T) => Promise<R>): Promise<R[]> {
  const results: R[] = [];
  let next = 0;
  const lane = async () => {
    while (next < items.length) {
      const i = next++;
      results[i] = await work(items[i]!);
    }
  };
  await Promise.all(Array.from({ length: lanes }, lane));
  return results;
}
