/** The compiled server against model servers: one that misbehaves in every known way, and one that this project did not write. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { LLMock } from "@copilotkit/aimock";
import type { Message } from "../../src/backends/backend.ts";
import type { Client } from "../../src/ninep/client.ts";
import { dial } from "../../src/ninep/dial.ts";
import { startTorture, type Torture } from "../backends/torture.ts";
import { openaiScenarios } from "../backends/torture-openai.ts";
import { startServer, type TestServer, until } from "./harness.ts";

const label = (scenario: string) => scenario.replaceAll("-", "");
const scenarios = Object.keys(openaiScenarios);

const key = "sk-do-not-tell-anyone";

let torture: Torture;
let server: TestServer;
let client: Client;
const mock = new LLMock({ host: "127.0.0.1", port: 0, logLevel: "silent", strict: true });

beforeAll(async () => {
  torture = await startTorture();
  mock.addFixturesFromJSON(fixtures);
  await mock.start();
  const urls = scenarios.map((scenario) => [
    `OLLIE_${label(scenario).toUpperCase()}_URL`,
    torture.url(scenario),
  ]);
  server = await startServer({
    env: {
      ...Object.fromEntries(urls),
      OLLIE_MOCK_URL: mock.url,
      OLLIE_ENABLED_BACKENDS: ["mock", "script", ...scenarios.map(label)].join(","),
      OLLIE_BACKEND: "mock",
      OLLIE_MODEL: "gpt-4o",
      OLLIE_IDLE_TIMEOUT: "2",
      OLLIE_MOCK_KEY: key,
    },
  });
  client = await dial(server.address);
});
afterAll(async () => {
  client.close();
  await server.stop();
  await torture.close();
  await mock.stop();
});

const fixtures = [
  { match: { userMessage: "say hello" }, response: { content: "naïve café ☕ 你好" }, chunkSize: 3 },
  {
    match: { userMessage: "flaky once", sequenceIndex: 0 },
    response: {
      error: { message: "Rate limit reached", type: "rate_limit_error" },
      status: 429,
      retryAfter: 2,
    },
  },
  { match: { userMessage: "flaky once" }, response: { content: "recovered" } },
  { match: { userMessage: "slowly" }, response: { content: "word ".repeat(400) }, chunkSize: 5, latency: 50 },
  {
    match: { userMessage: "costly" },
    response: {
      content: "paid",
      usage: { prompt_tokens: 100, completion_tokens: 20, total_tokens: 120 },
    },
  },
];

/** Chat without markers. */
const plain = (chat: string) => chat.replace(/^\[\[\[.*\n/gm, "");

async function session(words: string): Promise<string> {
  const name = `m${++count}`;
  await client.writeFile("session/new", `name=${name} cwd="${server.home.work}" ${words}\n`);
  return name;
}
let count = 0;

async function ask(name: string, text: string): Promise<string> {
  await client.writeFile(`s/${name}/prompt`, text);
  await client.readText(`s/${name}/idlewait`);
  return client.readText(`s/${name}/reply`);
}

function history(context: string): Message[] {
  return context
    .split("\n")
    .filter(Boolean)
    .map((line) => JSON.parse(line));
}

describe("every fault that a model server has been seen to have", () => {
  /** What came of each scenario; all run at once, as agents do. */
  const chats = new Map<string, string>();
  const contexts = new Map<string, Message[]>();

  beforeAll(async () => {
    await Promise.all(
      scenarios.map(async (scenario) => {
        const name = await session(`backend=${label(scenario)} model=m`);
        await ask(name, "go");
        chats.set(scenario, await client.readText(`s/${name}/chat`));
        contexts.set(scenario, history(await client.readText(`s/${name}/context`)));
      }),
    );
  }, 120_000);

  test.each(scenarios)(
    "%s: the turn ends with an answer or an error, and a history that providers accept",
    (scenario) => {
      const blocks = [...chats.get(scenario)!.matchAll(/^\[\[\[(\w+)/gm)].map((match) => match[1]!);
      expect(blocks.length % 2).toBe(0);
      expect(blocks.filter((type) => type === "end")).toHaveLength(blocks.length / 2);
      expect(["assistant", "error", "tool", "info", "reasoning"]).toContain(blocks.at(-2)!);
      const owed: string[] = [];
      for (const message of contexts.get(scenario)!) {
        if (message.role === "tool") expect(owed.shift()).toBe(message.id);
        else expect(owed).toEqual([]);
        if (message.role === "assistant") owed.push(...message.calls.map((call) => call.id));
      }
      expect(owed).toEqual([]);
    },
  );

  test.each(scenarios.filter((name) => /^(cut|rsttool|finisherror|finishoddtool|lengthtool)/.test(name)))(
    "%s: no call of the cut answer was run",
    (scenario) => {
      const results = contexts.get(scenario)!.filter((message) => message.role === "tool");
      expect(results.filter((result) => result.ok)).toEqual([]);
      expect(chats.get(scenario)).not.toContain("[[[tool name=write ok");
    },
  );

  test("text that was shown before a break stands in chat once", () => {
    expect(plain(chats.get("rst")!).match(/\bone\b/g)).toHaveLength(1);
  });
});

describe("an independent model server", () => {
  test("streams into chat, character for character", async () => {
    expect(await ask(await session(""), "say hello")).toBe("naïve café ☕ 你好\n");
  });

  test("that limits the rate is waited for in a state that says so", async () => {
    const name = await session("");
    await client.writeFile(`s/${name}/prompt`, "flaky once");
    const state = await until("limitretry", async () => {
      const seen = await client.readText(`s/${name}/state`);
      return seen.startsWith("limitretry") && seen;
    });
    expect(state).toMatch(/^limitretry: \d{4}-\d\d-\d\dT[\d:.]+Z\n$/);
    await client.readText(`s/${name}/idlewait`);
    expect(await client.readText(`s/${name}/reply`)).toBe("recovered\n");
    expect(await client.readText(`s/${name}/chat`)).toMatch(/^\[\[\[retry .*\n.*Rate limit reached/m);
  });

  test("is interrupted by stop, and what came stays", async () => {
    const name = await session("");
    await client.writeFile(`s/${name}/prompt`, "slowly");
    await until("some text", async () => (await client.readText(`s/${name}/chat`)).includes("word word"));
    await client.writeFile(`s/${name}/ctl`, "stop\n");
    await client.readText(`s/${name}/idlewait`);
    const chat = await client.readText(`s/${name}/chat`);
    expect(chat).toContain("Stopped by the user.");
    expect(chat.match(/word/g)!.length).toBeLessThan(400);
    expect(await ask(name, "say hello")).toContain("café");
  });

  test("is accounted for; what nobody has a price for costs unknown", async () => {
    const name = await session("");
    await ask(name, "costly");
    expect(await client.readText(`s/${name}/usage`)).toBe(
      "in=100\nout=20\ncached=0\nreasoning=0\nrequests=1\n",
    );
    expect(await client.readText(`s/${name}/cost`)).toBe("costLast=unknown\ncostSession=unknown\n");
  });

  test("does not see a backend that is not configured", async () => {
    const name = await session("");
    const change = client.writeFile(`session/${name}/agent/default/cfg`, "backend=nowhere\n");
    await expect(change).rejects.toThrow("nowhere");
  });
});

test("the key of a backend is neither on disk nor in the log nor in a tool's environment", async () => {
  const name = await session("backend=script");
  expect(await ask(name, "$ env")).toContain("ollie");
  expect(await client.readText(`s/${name}/chat`)).toContain("OLLIE_SESSION");
  const found = Bun.spawnSync(["grep", "-rl", key, server.home.home]);
  expect(found.stdout.toString()).toBe("");
  expect(server.log).not.toContain(key);
});
