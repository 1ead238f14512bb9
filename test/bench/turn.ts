/** A turn with one tool call against an OpenAI-compatible server in this process. */
import { type Figure, median } from "./figure.ts";
import { BenchServer } from "./server.ts";

const rounds = 20;

export async function turn(): Promise<Figure[]> {
  const arrivals: { at: number; bytes: number; ended?: number }[] = [];
  const model = Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    async fetch(request) {
      if (!request.url.endsWith("/chat/completions")) return Response.json({ data: [{ id: "m" }] });
      const at = Date.now();
      const body = await request.text();
      arrivals.push({ at, bytes: Buffer.byteLength(body), ended: endOfTool(body) });
      const delta =
        arrivals.length <= rounds
          ? {
              tool_calls: [
                { index: 0, id: `c${arrivals.length}`, function: { name: "shell", arguments: clock } },
              ],
            }
          : { content: "done" };
      return new Response(
        `data: ${JSON.stringify({ choices: [{ delta, finish_reason: null }] })}\n\n` +
          `data: ${JSON.stringify({ choices: [{ delta: {}, finish_reason: "tool_calls" in delta ? "tool_calls" : "stop" }] })}\n\n` +
          "data: [DONE]\n\n",
        { headers: { "content-type": "text/event-stream" } },
      );
    },
  });
  const server = new BenchServer({
    OLLIE_BACKEND: "openai",
    OLLIE_MODEL: "m",
    OLLIE_OPENAI_URL: `http://127.0.0.1:${model.port}`,
  });
  try {
    const { client } = await server.start();
    await client.writeFile("session/new", "name=b\n");
    await client.writeFile("s/b/prompt", "go");
    await client.readText("s/b/idlewait");
    client.close();
    const gaps = arrivals.slice(1).map(({ at, ended }) => at - ended!);
    return [
      { name: "from a tool's last act to the next request", value: median(gaps), unit: "ms", most: 10 },
      { name: "first request with the default tools", value: arrivals[0]!.bytes / 1000, unit: "kB", most: 8 },
    ];
  } finally {
    model.stop(true);
    await server.remove();
  }
}

/** The tool prints the time, to the millisecond, as the last thing it does. */
const clock = JSON.stringify({ command: "date +@%s%3N@" });

function endOfTool(body: string): number | undefined {
  const times = [...body.matchAll(/@(\d{13})@/g)];
  return times.length > 0 ? Number(times.at(-1)![1]) : undefined;
}
