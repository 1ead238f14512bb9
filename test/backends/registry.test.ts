/** Which backends the environment makes, and the texts of the files `backends` and `models`. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { BackendRegistry, type Environment } from "../../src/backends/registry.ts";
import { ask, play } from "./harness.ts";
import { startTorture, type Torture } from "./torture.ts";

let torture: Torture;
const made: BackendRegistry[] = [];
beforeAll(async () => {
  torture = await startTorture();
});
afterAll(async () => {
  for (const registry of made) registry.close();
  await torture.close();
});

function registry(environment: Environment): BackendRegistry {
  const one = new BackendRegistry(environment);
  made.push(one);
  return one;
}

/** Waits until every backend has been asked. */
async function asked(one: BackendRegistry): Promise<string> {
  while (/\tnot asked yet\n/.test(one.backends())) await Bun.sleep(5);
  return one.backends();
}

describe("the default backend", () => {
  test.each<[Environment, string, string[]]>([
    [{}, "script", ["script"]],
    [{ OLLIE_BACKEND: "ollama" }, "ollama", ["ollama"]],
    [{ OLLIE_OPENAI_KEY: "k" }, "openai", ["openai"]],
    [{ OLLIE_OLLAMA_URL: "http://h:1" }, "ollama", ["ollama"]],
    [{ OLLIE_OLLAMA_URL: "http://h:1", OLLIE_OPENAI_KEY: "k" }, "openai", ["openai", "ollama"]],
    [{ OLLIE_OPENAI_KEY: "" }, "script", ["script"]],
    [
      { OLLIE_ENABLED_BACKENDS: "my-vllm, ollama", OLLIE_MY_VLLM_URL: "http://h" },
      "my-vllm",
      ["my-vllm", "ollama"],
    ],
    [
      { OLLIE_BACKEND: "openai", OLLIE_ENABLED_BACKENDS: "ollama script" },
      "openai",
      ["openai", "ollama", "script"],
    ],
  ])("%j", (environment, name, names) => {
    const one = registry(environment);
    expect(one.defaultName).toBe(name);
    expect(one.names()).toEqual(names);
  });

  test("has OLLIE_MODEL; the others do not", () => {
    const one = registry({ OLLIE_BACKEND: "ollama", OLLIE_MODEL: "qwen3", OLLIE_OPENAI_KEY: "k" });
    expect(one.get().defaultModel).toBe("qwen3");
    expect(one.get("openai").defaultModel).toBe("");
    expect(one.get("script").defaultModel).toBe("script");
    expect(one.get("openai")).toBe(one.get("openai"));
  });
});

describe("a backend that cannot be made says why", () => {
  test.each<[Environment, string, RegExp]>([
    [{}, "nosuch", /^no backend is called "nosuch"; there are ollama, openai, script$/],
    [{ OLLIE_BACKEND: "nosuch" }, "nosuch", /^no backend is called "nosuch"/],
    [{ OLLIE_ENABLED_BACKENDS: "mine" }, "mine", /^the backend "mine" has no address: set OLLIE_MINE_URL$/],
    [{}, "openai", /^the backend "openai" has no key: set OLLIE_OPENAI_KEY, or OLLIE_OPENAI_URL/],
    [{ OLLIE_OPENAI_URL: "ftp://h" }, "openai", /"ftp:\/\/h" is no URL/],
    [{ OLLIE_IDLE_TIMEOUT: "soon" }, "ollama", /^OLLIE_IDLE_TIMEOUT: "soon" is no number of seconds/],
    [{ OLLIE_OLLAMA_NUM_CTX: "8k" }, "ollama", /^OLLIE_OLLAMA_NUM_CTX: "8k" is no number of tokens/],
    [{}, "copilot", /^the backend "copilot" is not built in yet; there are ollama, openai, script$/],
    [{ OLLIE_KIRO_TOKEN: "t" }, "kiro", /not built in yet/],
    [{ OLLIE_ANTHROPIC_KEY: "k" }, "anthropic", /not built in yet/],
    [{ OLLIE_GEMINI_KEY: "k" }, "gemini", /not built in yet/],
  ])("%j %s", (environment, name, words) => {
    expect(() => registry(environment).get(name)).toThrow(words);
  });
});

test("labels are OpenAI-compatible services of their own", async () => {
  const one = registry({
    OLLIE_ENABLED_BACKENDS: "openrouter,work",
    OLLIE_OPENROUTER_URL: torture.url("plain"),
    OLLIE_OPENROUTER_KEY: "rk",
    OLLIE_WORK_URL: torture.url("s402"),
  });
  expect(await play(one.get("openrouter"), ask("hi"))).toMatchObject({ text: "Hello" });
  expect(torture.requests("plain").at(-1)?.headers.get("authorization")).toBe("Bearer rk");
  expect((await play(one.get("work"), ask("hi"))).error?.message).toMatch(/^work: Insufficient credits/);
});

test("a configured backend that cannot be reached is an error, not another backend", async () => {
  const one = registry({ OLLIE_BACKEND: "ollama", OLLIE_OLLAMA_URL: "http://127.0.0.1:1" });
  expect((await play(one.get(), ask("hi"))).error?.message).toMatch(
    /^ollama: cannot reach http:\/\/127\.0\.0\.1:1: connection refused/,
  );
});

test("time limits come from the environment", async () => {
  const one = registry({ OLLIE_OPENAI_URL: torture.url("stall"), OLLIE_IDLE_TIMEOUT: "0.3" });
  expect((await play(one.get(), ask("hi"))).error?.message).toMatch(/no answer for 0\.[36] s/);
});

describe("what the tree shows", () => {
  const environment = () => ({
    OLLIE_BACKEND: "openai",
    OLLIE_MODEL: "vllm",
    OLLIE_ENABLED_BACKENDS: "ollama script dead copilot",
    OLLIE_OPENAI_URL: torture.url("models"),
    OLLIE_OLLAMA_URL: torture.url("ollama-plain"),
    OLLIE_DEAD_URL: "http://127.0.0.1:1",
  });

  test("is known at once, and better known soon", async () => {
    const one = registry(environment());
    let changes = 0;
    one.onChange = () => changes++;
    expect(one.backends().split("\n")[0]).toBe("openai\tvllm\tnot asked yet");
    expect(one.models()).toBe("");
    const [copilot, ...rest] = (await asked(one)).split("\n").filter(Boolean).reverse();
    expect(rest.reverse()).toEqual([
      "openai\tvllm\treachable",
      "ollama\t\treachable",
      "script\tscript\treachable",
      "dead\t\tdead: cannot reach http://127.0.0.1:1: connection refused",
    ]);
    expect(copilot).toMatch(/^copilot\t\tthe backend "copilot" is not built in yet/);
    expect(one.models().split("\n").filter(Boolean)).toEqual([
      "backend=openai model=llama",
      "backend=openai model=plain",
      "backend=openai model=router",
      "backend=openai model=vllm",
      "backend=ollama model=qwen3:8b",
      "backend=ollama model=tiny",
      "backend=script model=script",
    ]);
    expect(one.modelsOf("ollama")).toBe("qwen3:8b\ntiny\n");
    expect(one.modelsOf("nosuch")).toBe("");
    expect(changes).toBeGreaterThan(0);
  });

  test("does not ask at every look", async () => {
    const before = torture.requests("models").length;
    const one = registry(environment());
    await asked(one);
    for (let i = 0; i < 5; i++) one.models();
    await Bun.sleep(20);
    expect(torture.requests("models").length - before).toBe(1);
  });

  test("windows, asked for in the background", async () => {
    const one = registry(environment());
    expect(one.knownWindow("openai", "vllm")).toBeUndefined();
    while (one.knownWindow("openai", "vllm") === undefined) await Bun.sleep(5);
    expect(one.knownWindow("openai", "vllm")).toBe(32768);
    expect(one.knownWindow("openai", "nosuch")).toBeUndefined();
    expect(one.knownWindow("nosuch", "m")).toBeUndefined();
  });

  test("a scenario that is wrong", async () => {
    const one = registry({ OLLIE_SCRIPT_SCENARIO: "/nonexistent/scenario.yaml" });
    expect(await asked(one)).toMatch(/^script\tscript\tcannot read the scenario .*ENOENT/);
  });
});
