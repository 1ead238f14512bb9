import { afterEach, describe, expect, setDefaultTimeout, test } from "bun:test";
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { plainLaunch } from "../../src/exec/launch.ts";
import { callTool } from "../../src/tools/dispatch.ts";
import { prepare } from "../../src/tools/prepare.ts";
import { createRegistry } from "../../src/tools/registry.ts";
import { ServicePool } from "../../src/tools/service.ts";
import { pidsIn, runs, until } from "../exec/helper.ts";
import { folder, Workshop, writeTool } from "./helper.ts";

// Each starts several processes, on machines that have other things to do.
setDefaultTimeout(120_000);

/** Answers with its pid and what it was asked; some requests mean more. */
const service = `#!/usr/bin/env ollie-run
import { existsSync, writeFileSync } from "node:fs";
import { service } from "ollie:tool";
await service.serve(async (request: { do?: string; file?: string; text?: string }, signal) => {
  if (request.do === "die") process.kill(process.pid, "SIGKILL");
  if (request.do === "leave") process.exit(0);
  if (request.do === "throw") throw new Error("not like this");
  if (request.do === "hold") while (!existsSync(request.file!)) await Bun.sleep(5);
  if (request.do === "spawn") {
    const child = Bun.spawn(["/bin/sh", "-c", "setsid sleep 300 & echo $!"], { stdout: "pipe" });
    return Number((await child.stdout.getReader().read()).value!.toString().split(",").map((c) => String.fromCharCode(Number(c))).join(""));
  }
  if (request.do === "env") return process.env;
  if (request.do === "echo") return void writeFileSync(request.file!, request.text!);
  if (request.do === "wait") {
    writeFileSync(request.file!, "waits");
    signal.addEventListener("abort", () => writeFileSync(request.file!, "given up"));
    await new Promise(() => {});
  }
  return process.pid;
});
`;
const tool = `#!/usr/bin/env ollie-run
import { print, readArgs, service } from "ollie:tool";
print(JSON.stringify(await service.ask(await readArgs())));
`;

const pools: ServicePool[] = [];
afterEach(async () => {
  for (const pool of pools.splice(0)) await pool.close();
});

function tools(meta: Record<string, unknown> = {}, program = service): string {
  const dir = folder();
  writeFileSync(join(dir, "keeper.ts"), program, { mode: 0o755 });
  const args = { type: "object", additionalProperties: true };
  writeTool(dir, "t", tool, { args, service: { cmd: "keeper.ts", ...meta } });
  return dir;
}

/** A session with a tool `t` that hands its arguments to its service and prints the answer. */
function session(dir = tools(), more = {}): Workshop {
  const pool = new ServicePool();
  pools.push(pool);
  return new Workshop(dir, { services: pool, ...more });
}

async function pidOf(shop: Workshop): Promise<number> {
  return Number(await shop.ok("t", {}));
}

describe("a service", () => {
  test("outlives the call that it was started for, and serves the next ones", async () => {
    const shop = session();
    const pid = await pidOf(shop);
    expect(runs(pid)).toBe(true);
    expect(await pidOf(shop)).toBe(pid);
    expect((await shop.call("t", {}, "another agent")).text).toBe(`${pid}\n[unsandboxed]`);
  });

  test("is one for each folder and session, also for calls that come at once", async () => {
    const dir = tools();
    const [one, two] = [session(dir), session(dir)];
    const pids = await Promise.all([pidOf(one), pidOf(one), pidOf(two)]);
    expect(pids[0]).toBe(pids[1]!);
    expect(pids[2]).not.toBe(pids[0]!);
    mkdirSync(join(one.cwd, "sub"));
    one.ctx.cwd = join(one.cwd, "sub");
    expect(pids).not.toContain(await pidOf(one));
  });

  test("has the environment of the calls, but nothing of a single one", async () => {
    const shop = session(tools(), { env: { MINE: "1" }, addr: "unix!/run/x" });
    const env = JSON.parse(await shop.ok("t", { do: "env" }));
    expect(env).toMatchObject({ MINE: "1", TMPDIR: `${shop.ctx.tmp}/tmp`, OLLIE_CWD: shop.cwd });
    for (const name of ["OLLIE_CALL_ID", "OLLIE_AGENT", "OLLIE_ADDR", "OLLIE_ARG_DO", "OLLIE_TOOL"])
      expect(env).not.toHaveProperty(name);
  });

  test("tells what is wrong with a request", async () => {
    expect(await session().no("t", { do: "throw" })).toStartWith("[stderr]\nnot like this\n");
  });

  test("may be asked and may answer at length", async () => {
    const shop = session();
    const text = "é😀".repeat(200_000);
    const file = shop.write("out", "");
    expect(await shop.ok("t", { do: "echo", text, file })).toBe("undefined");
    expect(readFileSync(file, "utf8")).toBe(text);
  });

  test("may be used by a program in any language", async () => {
    const dir = tools();
    const script = `#!/bin/sh
printf '{"do":"throw"}' >"$OLLIE_SERVICE.request.new"
mv "$OLLIE_SERVICE.request.new" "$OLLIE_SERVICE.request"
until [ -e "$OLLIE_SERVICE.answer" ]; do sleep 0.02; done
cat "$OLLIE_SERVICE.answer"
`;
    writeTool(dir, "t", script, { service: { cmd: "keeper.ts" } });
    expect(await session(dir).ok("t", {})).toBe('{"error":"not like this"}');
  });

  test("learns that a request was given up, and nothing of it stays", async () => {
    const shop = session();
    const stop = new AbortController();
    const file = join(shop.dir, "state");
    const args = JSON.stringify({ do: "wait", file });
    const call = prepare({ id: "c", name: "t", args }, createRegistry(shop.ctx.toolsPath).list());
    const outcome = callTool(call, shop.ctx, "c", stop.signal);
    await until("it waits", () => existsSync(file));
    stop.abort();
    expect((await outcome).how).toBe("cancelled");
    await until("it knows", () => readFileSync(file, "utf8") === "given up");
    const [folder] = readdirSync(join(shop.ctx.tmp, "tmp"));
    expect(readdirSync(join(shop.ctx.tmp, "tmp", folder!))).toEqual([]);
  });

  test("is another one when what confines it has changed", async () => {
    const shop = session();
    const cage = (name: string) => async () => ({
      terms: name,
      allows: () => false,
      launch: () => plainLaunch(),
      after: async () => [],
    });
    shop.ctx.serviceCage = cage("one");
    const pid = await pidOf(shop);
    expect(await pidOf(shop)).toBe(pid);
    shop.ctx.serviceCage = cage("two");
    expect(await pidOf(shop)).not.toBe(pid);
    await until("the first one is gone", () => !runs(pid));
  });

  test("is another one when the session's environment or its program has changed", async () => {
    const dir = tools();
    const shop = session(dir);
    const pids = [await pidOf(shop)];
    shop.ctx.env = { MORE: "1" };
    pids.push(await pidOf(shop));
    writeFileSync(join(dir, "keeper.ts"), `${service}\n// changed\n`);
    pids.push(await pidOf(shop));
    expect(new Set(pids).size).toBe(3);
    await until("the first two are gone", () => !runs(pids[0]!) && !runs(pids[1]!));
    expect(runs(pids[2]!)).toBe(true);
  });
});

describe("the end of a service", () => {
  test("comes when nobody has called for long enough", async () => {
    const shop = session(tools({ idle: 0.2 }));
    const pid = await pidOf(shop);
    await until("it is gone", () => !runs(pid));
    const { text } = await shop.call("t", {});
    expect(text).toMatch(/^\d+\n\[unsandboxed\]$/);
  });

  test("comes after the seconds that the session's environment says", async () => {
    const shop = session(tools({ idle: 3600, idleVariable: "PATIENCE" }), { env: { PATIENCE: "0.2" } });
    const pid = await pidOf(shop);
    await until("it is gone", () => !runs(pid));
  });

  test("does not come while a call is in progress", async () => {
    const shop = session(tools({ idle: 0.1 }));
    const go = join(shop.dir, "go");
    const holding = shop.ok("t", { do: "hold", file: go });
    const pid = await pidOf(shop);
    for (let i = 0; i < 5; i++) {
      await Bun.sleep(50);
      expect(await pidOf(shop)).toBe(pid);
    }
    writeFileSync(go, "");
    expect(await holding).toBe(String(pid));
  });

  test("by a crash fails the call it was serving; the next one has a new one and says so", async () => {
    const shop = session();
    const pid = await pidOf(shop);
    expect(await shop.no("t", { do: "die" })).toContain("the tool's service has ended without an answer");
    await until("it is gone", () => !runs(pid));
    expect((await shop.call("t", {})).text).toMatch(
      /^\d+\n\[keeper\.ts had ended \(killed by SIGKILL\) and was started again\]\n\[unsandboxed\]$/,
    );
    expect((await shop.call("t", {})).text).toMatch(/^\d+\n\[unsandboxed\]$/);
  });

  test("by its own will is nothing to speak of", async () => {
    const shop = session();
    const pid = await pidOf(shop);
    await shop.no("t", { do: "leave" });
    await until("it is gone", () => !runs(pid));
    expect((await shop.call("t", {})).text).toMatch(/^\d+\n\[unsandboxed\]$/);
  });

  test("is also that of all that it has started, wherever it went", async () => {
    const shop = session();
    const child = Number(await shop.ok("t", { do: "spawn" }));
    const pid = await pidOf(shop);
    expect(runs(child)).toBe(true);
    await pools[0]!.close();
    expect([pid, child].filter(runs)).toEqual([]);
    expect(await shop.no("t", {})).toContain("session s is ending");
    expect(readdirSync(join(shop.ctx.tmp, "tmp"))).toEqual([]);
  });

  test("when it crashes, likewise", async () => {
    const shop = session();
    const child = Number(await shop.ok("t", { do: "spawn" }));
    await shop.no("t", { do: "die" });
    await until("its child is gone", () => !runs(child));
  });

  test("comes with the server's, also by SIGKILL", async () => {
    const server = Bun.spawn([process.execPath, join(import.meta.dir, "service.child.ts"), tools()], {
      stdin: "pipe",
      stdout: "pipe",
    });
    const answers = server.stdout.getReader();
    const ask = async (line: string) => {
      server.stdin.write(`${line}\n`);
      server.stdin.flush();
      return Number(new TextDecoder().decode((await answers.read()).value));
    };
    const pids = [await ask("{}"), await ask('{"do":"spawn"}')];
    expect(pids.filter(runs)).toEqual(pids);
    server.kill("SIGKILL");
    await until("nothing of it runs", () => !pids.some(runs));
  });

  test("is noticed where only its folder is gone", async () => {
    const shop = session();
    const pid = await pidOf(shop);
    rmSync(join(shop.ctx.tmp, "tmp"), { recursive: true });
    expect(await pidOf(shop)).not.toBe(pid);
  });
});

describe("a service that cannot be started", () => {
  test.each([
    ["ends", "#!/bin/sh\necho no licence >&2\nexit 3\n", "it ended at once: exit 3: no licence"],
    ["is no program", "hello", "is neither a program nor a script"],
  ])("because it %s refuses the call and says why", async (_why, program, reason) => {
    const text = await session(tools({}, program)).no("t", {});
    expect(text).toContain("its service keeper.ts could not be started: ");
    expect(text).toContain(reason);
  });

  test("is no obstacle once it can be", async () => {
    const dir = tools({}, "#!/bin/sh\nexit 1\n");
    const shop = session(dir);
    await shop.no("t", {});
    writeFileSync(join(dir, "keeper.ts"), service);
    expect(runs(await pidOf(shop))).toBe(true);
  });

  test("does not keep a call from being cancelled, nor itself from ending", async () => {
    const dir = folder();
    const file = join(dir, "pid");
    const shop = session(tools({}, `#!/bin/sh\necho $$ >${file}\nsleep 300\n`));
    const stop = new AbortController();
    const call = prepare({ id: "c", name: "t", args: "{}" }, createRegistry(shop.ctx.toolsPath).list());
    const outcome = callTool(call, shop.ctx, "c", stop.signal);
    await until("it is being started", () => existsSync(file) && pidsIn(file)[0]! > 0);
    stop.abort();
    expect((await outcome).how).toBe("cancelled");
    await pools[0]!.close();
    expect(pidsIn(file).filter(runs)).toEqual([]);
  });

  test("is an error of a sidecar that leads out of its folder", () => {
    const registry = createRegistry(tools({ cmd: "../keeper.ts" }));
    expect(registry.problems()[0]!.reason).toContain(
      "service.cmd: ../keeper.ts is not in the sidecar's folder",
    );
  });
});

test("a tool that needs a service is no job", async () => {
  const dir = folder();
  const args = { type: "object", properties: { detach: { type: "boolean" } } };
  writeTool(dir, "t", tool, { args, service: { cmd: "keeper.ts" } });
  expect(await session(dir).no("t", { detach: true })).toContain("what needs a service cannot run as a job");
});

test("a tool that needs a service is refused where none can run", async () => {
  expect(await new Workshop(tools()).no("t", {})).toContain("it needs a service, and here none can run");
});
