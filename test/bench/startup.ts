/** From the start of the process to the first 9P answer, and what it takes up when idle. */
import { type Figure, median } from "./figure.ts";
import { BenchServer } from "./server.ts";

export async function startup(): Promise<Figure[]> {
  const server = new BenchServer();
  const times: number[] = [];
  let memory = 0;
  try {
    for (let run = 0; run < 7; run++) {
      const { client, took } = await server.start();
      // The first start installs the shipped files; it is told apart.
      if (run > 0) times.push(took);
      await Bun.sleep(500);
      memory = server.memory();
      client.close();
      await server.stop();
    }
  } finally {
    await server.remove();
  }
  return [
    { name: "start to the first 9P answer", value: median(times), unit: "ms", most: 150 },
    { name: "idle resident memory", value: memory / 2 ** 20, unit: "MiB", most: 70 },
  ];
}
