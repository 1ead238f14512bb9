/** Tool calls in their sandbox: what confining costs, and what calls side by side cost. */
import { copyFileSync, mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { type Figure, median } from "./figure.ts";
import { BenchServer } from "./server.ts";

const rounds = 15;
const atOnce = 20;

interface Round {
  calls: { name: string; args: object }[];
}

export async function hands(): Promise<Figure[]> {
  const plain = await spawnTime();
  const nothing = await gaps({ calls: [{ name: "nothing", args: {} }] });
  const read = { name: "file_read", args: { path: "file" } };
  const one = await gaps({ calls: [read] });
  const many = await gaps({ calls: Array.from({ length: atOnce }, () => read) });
  return [
    {
      name: "sandboxed /bin/true, whole tool path, over a plain spawn",
      value: nothing - plain,
      unit: "ms",
      most: 10,
    },
    { name: `${atOnce} file_read calls side by side, over one`, value: many / one, unit: "x", most: 8 },
  ];
}

async function spawnTime(): Promise<number> {
  const times: number[] = [];
  for (let round = 0; round < rounds; round++) {
    const began = performance.now();
    await Bun.spawn(["/bin/true"]).exited;
    times.push(performance.now() - began);
  }
  return median(times);
}

/** Milliseconds from an answer with these calls to the request with their results. */
async function gaps({ calls }: Round): Promise<number> {
  const times: number[] = [];
  let asked = 0;
  let answered = 0;
  const model = Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    async fetch(request) {
      if (!request.url.endsWith("/chat/completions")) return Response.json({ data: [{ id: "m" }] });
      if (asked++ > 0) times.push(performance.now() - answered);
      await request.text();
      const wanted = calls.map(({ name, args }, index) => ({
        index,
        id: `c${asked}-${index}`,
        // An argument that differs: the same call again and again would be told to be a loop.
        function: { name, arguments: JSON.stringify({ ...args, limit: asked }) },
      }));
      const more = asked <= rounds;
      const delta = more ? { tool_calls: wanted } : { content: "done" };
      answered = performance.now();
      return new Response(
        `data: ${JSON.stringify({ choices: [{ delta, finish_reason: null }] })}\n\n` +
          `data: ${JSON.stringify({ choices: [{ delta: {}, finish_reason: more ? "tool_calls" : "stop" }] })}\n\n` +
          "data: [DONE]\n\n",
        { headers: { "content-type": "text/event-stream" } },
      );
    },
  });
  const tools = "mine";
  const server = new BenchServer({
    OLLIE_BACKEND: "openai",
    OLLIE_MODEL: "m",
    OLLIE_OPENAI_URL: `http://127.0.0.1:${model.port}`,
  });
  try {
    const mine = join(server.folder, tools);
    mkdirSync(mine);
    copyFileSync("/bin/true", join(mine, "nothing"));
    const limit = { type: "number" };
    writeFileSync(
      join(mine, "nothing.meta"),
      JSON.stringify({ description: "nothing", args: { type: "object", properties: { limit } } }),
    );
    server.environment.OLLIE_TOOLS_PATH = `${mine}:${join(server.folder, ".config/ollie/tools")}`;
    const cwd = join(server.folder, "work");
    mkdirSync(cwd);
    writeFileSync(join(cwd, "file"), "some text\n".repeat(50));
    const { client } = await server.start();
    await client.writeFile("session/new", `name=b cwd=${cwd}\n`);
    await client.writeFile("s/b/tools", "nothing\n");
    await client.writeFile("s/b/prompt", "go");
    await client.readText("s/b/idlewait");
    const chat = await client.readText("s/b/chat");
    if (!chat.includes("done") || times.length !== rounds)
      throw new Error(`not all calls ran:\n${chat.slice(-2000)}`);
    client.close();
    return median(times);
  } finally {
    model.stop(true);
    await server.remove();
  }
}
