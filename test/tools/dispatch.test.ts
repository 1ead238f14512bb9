import { describe, expect, test } from "bun:test";
import { existsSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { plainLaunch } from "../../src/exec/launch.ts";
import { callTool } from "../../src/tools/dispatch.ts";
import { callEnvironment } from "../../src/tools/environment.ts";
import { prepare } from "../../src/tools/prepare.ts";
import { createRegistry } from "../../src/tools/registry.ts";
import { pidsIn, runs, until } from "../exec/helper.ts";
import { folder, toolWith, Workshop, writeTool } from "./helper.ts";

function workshop(program: string, meta: Record<string, unknown> = {}, more = {}): Workshop {
  const dir = folder();
  writeTool(dir, "t", program, meta);
  return new Workshop(dir, more);
}

const free = { args: { type: "object", additionalProperties: true } };

describe("a call", () => {
  test("gives the tool its arguments on stdin, as one object and nothing after it", async () => {
    const shop = workshop("#!/bin/sh\ncat\n", free);
    const args = { text: "a 'b' \"c\" $HOME\nä", n: 1, list: [1, { x: null }] };
    const { ok, how, text } = await shop.call("t", args);
    expect({ ok, how }).toEqual({ ok: true, how: "done" });
    const [json, status] = text.split("\n");
    expect(JSON.parse(json!)).toEqual(args);
    expect(status).toBe("[unsandboxed]");
  });

  test("executes the file itself: its first line counts", async () => {
    expect((await workshop("#!/bin/cat\nthe file\n").call("t", {})).text).toStartWith(
      "#!/bin/cat\nthe file\n",
    );
  });

  test("gives no words on the command line", async () => {
    expect((await workshop('#!/bin/sh\necho "$# $0"\n').call("t", {})).text).toMatch(/^0 .*\/t\n/);
  });

  test("runs in the agent's folder, with the environment of the contract", async () => {
    process.env.OLLIE_OPENAI_KEY = "sk-server";
    process.env.SSH_AUTH_SOCK = "/run/agent";
    const shop = workshop("#!/bin/sh\npwd\nenv\n", free, {
      address: () => ({ addr: "unix!/run/x" }),
      memoryPath: "/mem",
      skillsPath: "/s1:/s2",
      env: {
        MINE: "1",
        PAGER: "less",
        BUN_OPTIONS: "--preload=x",
        OLLIE_OLLAMA_KEY: "k",
        OLLIE_SESSION: "forged",
      },
    });
    const { text } = await shop.call("t", { n: 5, "a-b": "x y", yes: true, list: [1] });
    delete process.env.OLLIE_OPENAI_KEY;
    delete process.env.SSH_AUTH_SOCK;
    const lines = text.split("\n");
    expect(lines[0]).toBe(shop.cwd);
    for (const line of [
      "MINE=1",
      "PAGER=less",
      "OLLIE_TOOL=t",
      "OLLIE_SESSION=s",
      "OLLIE_AGENT=a",
      `OLLIE_CWD=${shop.cwd}`,
      `OLLIE_TOOLS_PATH=${shop.ctx.toolsPath}`,
      "OLLIE_MEMORY_PATH=/mem",
      "OLLIE_SKILLS_PATH=/s1:/s2",
      `OLLIE_TMP=${shop.ctx.tmp}/tmp`,
      `TMPDIR=${shop.ctx.tmp}/tmp`,
      "OLLIE_ADDR=unix!/run/x",
      "OLLIE_ARG_N=5",
      "OLLIE_ARG_A_B=x y",
      "OLLIE_ARG_YES=true",
      `HOME=${process.env.HOME}`,
      "TERM=dumb",
    ]) {
      expect(lines).toContain(line);
    }
    expect(text).toMatch(/^OLLIE_CALL_ID=c\d+$/m);
    expect(text).not.toMatch(/sk-server|BUN_|OLLIE_OLLAMA_KEY|forged|SSH_AUTH_SOCK|OLLIE_ARG_LIST/);
    expect(existsSync(join(shop.ctx.tmp, "tmp"))).toBe(true);
  });

  test("has scalars of up to 4 KiB as variables", async () => {
    const shop = workshop('#!/bin/sh\nprintf %s "$OLLIE_ARG_A" | wc -c\nenv | grep -c OLLIE_ARG_\n', free);
    const { text } = await shop.call("t", { a: "x".repeat(4096), b: "x".repeat(4097), c: "nul\0" });
    expect(text).toStartWith("4096\n1\n");
  });

  test("with arguments that had to be repaired says what ran", async () => {
    const shop = workshop("#!/bin/sh\necho ran\n", {
      args: { type: "object", properties: { a: { type: "string" } } },
    });
    expect((await shop.call("t", "{'a': 'b',}")).text).toBe(
      '[arguments repaired: JSON syntax mended; ran with {"a":"b"}]\nran\n[unsandboxed]',
    );
  });
});

describe("a result", () => {
  test("says that there was no output, and the exit status", async () => {
    expect(await workshop("#!/bin/sh\nexit 1\n").call("t", {})).toEqual({
      ok: false,
      how: "failed",
      text: "(no output)\n[exit 1, unsandboxed]",
      closing: "[exit 1, unsandboxed]",
    });
  });

  test("has stderr under a line of its own, then the status as its last line", async () => {
    const { text } = await workshop("#!/bin/sh\necho out\necho err >&2\nexit 3\n").call("t", {});
    expect(text).toBe("out\n[stderr]\nerr\n[exit 3, unsandboxed]");
  });

  test("names the signal", async () => {
    const { text, how } = await workshop("#!/bin/sh\nkill -SEGV $$\n").call("t", {});
    expect(how).toBe("failed");
    expect(text).toEndWith("[killed by SIGSEGV, unsandboxed]");
  });

  test("of a call that took too long keeps what was printed and says that it was no crash", async () => {
    const meta = { args: { type: "object", properties: { timeout: { type: "number" } } } };
    const shop = workshop("#!/bin/sh\necho partial\nsleep 300\n", meta);
    const { how, text } = await shop.call("t", { timeout: 0.2 });
    expect(how).toBe("timedOut");
    expect(text).toBe(
      'partial\n[killed after 0.2 s (not a crash: that is its time limit; "timeout" asks for more), what it printed until then is above, unsandboxed]',
    );
  });

  test("tells of background processes", async () => {
    const { ok, text } = await workshop("#!/bin/sh\nsleep 47 &\necho done\n").call("t", {});
    expect(ok).toBe(true);
    expect(text).toMatch(/^done\n\[background process ended \(pid \d+: sleep 47\), unsandboxed\]$/);
  });

  test("stays within 16 KiB and says where the whole is", async () => {
    const shop = workshop("#!/bin/sh\nseq 100000; seq 100000 >&2; exit 2\n");
    const { text } = await shop.call("t", {});
    expect(Buffer.byteLength(text)).toBeLessThanOrEqual(16 * 1024);
    expect(text).toEndWith("\n100000\n[exit 2, unsandboxed]");
    const file = /the whole output is in (\S+\.txt)\]/.exec(text)![1]!;
    expect(file).toStartWith(join(shop.ctx.tmp, "output"));
    expect(readFileSync(file, "utf8")).toEndWith("99999\n100000\n");
  });

  test("finds the user's desktop outside of the sandbox only", () => {
    const { ctx } = new Workshop();
    const before = { ...process.env };
    Object.assign(process.env, { XAUTHORITY: "/x", DBUS_SESSION_BUS_ADDRESS: "unix:path=/y" });
    const cage = { terms: "", allows: () => false, launch: () => plainLaunch(), after: async () => [] };
    const names = (confined: boolean) =>
      Object.keys(callEnvironment(toolWith({}), {}, ctx, "c", confined ? cage : undefined));
    expect(names(false)).toContain("XAUTHORITY");
    expect(names(false)).toContain("DBUS_SESSION_BUS_ADDRESS");
    expect(names(true).filter((name) => /XAUTH|DBUS/.test(name))).toEqual([]);
    for (const name of ["XAUTHORITY", "DBUS_SESSION_BUS_ADDRESS"]) {
      if (before[name] === undefined) delete process.env[name];
      else process.env[name] = before[name];
    }
  });

  test("is held to the memory that the session's env allows", async () => {
    const shop = workshop(
      "#!/bin/sh\nhead -c 400000000 /dev/zero | tail -c 399999999 | wc -c\n",
      {},
      { env: { OLLIE_TOOL_MEMORY: "100" } },
    );
    expect((await shop.call("t", {})).text).not.toContain("399999999");
  });
});

describe("cancelling", () => {
  test("ends the processes and keeps what was printed", async () => {
    const shop = workshop("#!/bin/sh\necho begun\nsleep 300 &\necho $! $$ >pids\nsleep 300\n");
    const registry = createRegistry(shop.ctx.toolsPath);
    const prepared = prepare({ id: "x", name: "t", args: "{}" }, registry.list());
    const controller = new AbortController();
    const seen: string[] = [];
    const call = callTool(prepared, shop.ctx, "x", controller.signal, (text) => seen.push(text));
    await until("the tool runs", () => pidsIn(shop.path("pids")).length === 2);
    await until("its output was seen", () => seen.join("") === "begun\n");
    controller.abort();
    const { how, text } = await call;
    expect(how).toBe("cancelled");
    expect(text).toMatch(/^begun\n\[cancelled by the user after \d+\.\d s, unsandboxed\]$/);
    await until("everything is gone", () => !pidsIn(shop.path("pids")).some(runs));
  });
});

describe("a call that cannot run is refused with a reason", () => {
  test("arguments that do not fit", async () => {
    const shop = workshop("#!/bin/sh\n: >ran\n", {
      args: { type: "object", properties: {}, required: ["x"] },
    });
    expect(await shop.call("t", {})).toMatchObject({
      ok: false,
      how: "refused",
      text: expect.stringContaining("x is missing"),
    });
    expect(existsSync(shop.path("ran"))).toBe(false);
  });

  test.each(["elevated", "sudo"])("a tool that needs %s", async (key) => {
    const shop = workshop("#!/bin/sh\n: >ran\n", { [key]: true });
    const { how, text } = await shop.call("t", {});
    expect(how).toBe("refused");
    expect(text).toContain("was not run");
    expect(existsSync(shop.path("ran"))).toBe(false);
  });

  test("the agent's folder is gone", async () => {
    const shop = workshop("#!/bin/sh\n");
    rmSync(shop.cwd, { recursive: true });
    const { how, text } = await shop.call("t", {});
    expect(how).toBe("refused");
    expect(text).toContain("working folder");
    expect(text).toContain(shop.cwd);
  });

  const programs: [string, string | undefined, string][] = [
    ["has gone since", undefined, "no such file"],
    ["names an interpreter that does not exist", "#!/opt/none/python\n", "/opt/none/python"],
    ["has no first line that names one", "echo hi\n", "#!/bin/sh"],
    ["has Windows line ends", "#!/bin/sh\r\necho hi\r\n", "CRLF"],
  ];
  test.each(programs)("its program %s", async (_name, program, reason) => {
    const shop = workshop("#!/bin/sh\n");
    const registry = createRegistry(shop.ctx.toolsPath);
    const prepared = prepare({ id: "x", name: "t", args: "{}" }, registry.list());
    const path = join(shop.ctx.toolsPath, "t");
    if (program === undefined) rmSync(path);
    else writeFileSync(path, program);
    const { how, text } = await callTool(prepared, shop.ctx, "x", new AbortController().signal);
    expect(how).toBe("refused");
    expect(text.toLowerCase()).toContain(reason.toLowerCase());
  });
});

describe("what tools print never reaches a history as it came", () => {
  test.each([
    ["NUL bytes", "head -c 2000 /bin/ls"],
    ["broken UTF-8", "printf '\\360\\237 \\377\\376'"],
    ["colours", "printf '\\033[31mred\\033[0m\\r\\n'"],
    ["another encoding", "printf '\\304\\343\\272\\303'"],
  ])("%s", async (_name, command) => {
    const { text } = await workshop(`#!/bin/sh\n${command}\n`).call("t", {});
    expect(text.isWellFormed()).toBe(true);
    expect(text).not.toMatch(/[\x00-\x08\x0b-\x1f\x7f]/);
    expect(JSON.parse(JSON.stringify(text))).toBe(text);
  });
});
