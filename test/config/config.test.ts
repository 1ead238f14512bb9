// biome-ignore-all lint/suspicious/noTemplateCurlyInString: ${…} is the env file's own syntax
import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { loadConfig } from "../../src/config/config.ts";

let home: string;
beforeEach(() => {
  home = mkdtempSync(join(tmpdir(), "ollie-config-"));
  mkdirSync(join(home, ".config/ollie"), { recursive: true });
});
afterEach(() => rmSync(home, { recursive: true, force: true }));

const envFile = (text: string) => writeFileSync(join(home, ".config/ollie/env"), text);
const load = (environment: Record<string, string> = {}, flags = {}) =>
  loadConfig({ HOME: home, ...environment }, flags);

describe("configuration", () => {
  test("without an env file everything has a default", () => {
    rmSync(join(home, ".config"), { recursive: true });
    const { paths, settings, warnings } = load();
    expect(paths).toEqual({
      home,
      config: join(home, ".config/ollie"),
      envFile: join(home, ".config/ollie/env"),
      state: join(home, ".local/state/ollie"),
      agents: [join(home, ".config/ollie/agents")],
      prompts: [join(home, ".config/ollie/prompts")],
      tools: [join(home, ".config/ollie/tools")],
      skills: [join(home, ".config/ollie/skills")],
      memory: join(home, ".config/ollie/memory"),
    });
    expect(settings.model).toBeUndefined();
    expect(settings.logLevel).toBe("info");
    expect(warnings).toEqual([]);
  });

  test("paths that the env file sets take effect", () => {
    envFile("OLLIE_TOOLS_PATH=/a:~/b\nOLLIE_STATE_PATH=${XDG_RUNTIME_DIR:-/nowhere}/state");
    const { paths } = load();
    expect(paths.tools).toEqual(["/a", join(home, "b")]);
    expect(paths.state).toBe("/nowhere/state");
  });

  test("the process environment wins over the file, flags over both", () => {
    envFile("OLLIE_MODEL=from-file\nOLLIE_BACKEND=ollama\nOLLIE_STATE_PATH=/file");
    const { settings, environment } = load({ OLLIE_MODEL: "from-shell", OLLIE_STATE_PATH: "/shell" });
    expect(settings.model).toBe("from-shell");
    expect(environment.OLLIE_BACKEND).toBe("ollama");
    expect(load({ OLLIE_STATE_PATH: "/shell" }, { state: "/flag" }).paths.state).toBe("/flag");
  });

  test("an empty variable in the process environment brings the default back", () => {
    envFile("OLLIE_MODEL=m\nOLLIE_LOG=debug");
    expect(load({ OLLIE_MODEL: "", OLLIE_LOG: "" }).settings).toEqual({
      logLevel: "info",
      elevateTimeout: 300,
    });
  });

  test("XDG folders are honoured, relative ones ignored as the specification says", () => {
    expect(load({ XDG_CONFIG_HOME: "/c", XDG_STATE_HOME: "s" }).paths).toMatchObject({
      config: "/c/ollie",
      state: join(home, ".local/state/ollie"),
    });
  });

  test.each([
    ["OLLIE_IDLE_TIMEOUT=soon", "OLLIE_IDLE_TIMEOUT: must be a number of seconds"],
    ["OLLIE_IDLE_TIMEOUT=-1", "OLLIE_IDLE_TIMEOUT: must be a number of seconds, 0 for no limit"],
    ["OLLIE_OLLAMA_NUM_CTX=8k", "OLLIE_OLLAMA_NUM_CTX: must be a number of tokens"],
    ["OLLIE_MAX_SESSION_COST=x", "OLLIE_MAX_SESSION_COST: must be an amount in US dollars"],
    ["OLLIE_OPENAI_URL=localhost:1234", "OLLIE_OPENAI_URL: must be an http:// or https:// address"],
    ["OLLIE_LOG=loud", "OLLIE_LOG: must be one of trace, debug, info, warn, error, silent"],
    ["OLLIE_TOOLS_PATH=tools", "OLLIE_TOOLS_PATH: tools must be an absolute path"],
    ["what", "~/.config/ollie/env:1: expected KEY=value, found “what”"],
  ])("%s is refused", (line, message) => {
    envFile(line);
    expect(() => load()).toThrow(message);
  });

  test("misspelt variables are warned about, those of labels and of tool calls are not", () => {
    envFile(
      "OLLIE_ENABLED_BACKENDS=my-router,openai\nOLLIE_MY_ROUTER_URL=http://x\nOLLIE_OPENIA_KEY=k\nOLLIE_OLLAMA_URL=\nPATH_X=1",
    );
    const ofTools = { OLLIE_ARG_PATH: "x", OLLIE_TOOL: "shell", OLLIE_EXEC: "/1-2/3/" };
    expect(load({ OLLIE_MODLE: "x", ...ofTools }).warnings).toEqual([
      "OLLIE_MODLE is no setting of ollie: misspelt?",
      "OLLIE_OPENIA_KEY is no setting of ollie: misspelt?",
    ]);
  });

  test("variables that nothing reads yet are named, so that nobody relies on them", () => {
    envFile("OLLIE_MAX_SESSION_COST=5\nOLLIE_ROUTE_MODEL=\nOLLIE_BACKEND=script");
    expect(load().warnings).toEqual([
      "OLLIE_MAX_SESSION_COST has no effect yet: what reads it is not built in",
    ]);
  });
});
