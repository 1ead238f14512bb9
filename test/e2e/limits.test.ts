/** Calls that take more than their share, and what others of the same user can see of a server. */
import { afterEach, describe, expect, setDefaultTimeout, test } from "bun:test";
import { readFileSync, statSync } from "node:fs";
import { until } from "./harness.ts";
import { lacksOrdinary, OrdinaryServer } from "./ordinary.ts";

// The build may be a part of the first one.
setDefaultTimeout(60_000);

const key = "sk-proj-nobody-else-reads-this-0123456789";
let server: OrdinaryServer;
afterEach(() => server.stop());

/** A session whose agent runs what it is told, for a second. */
async function start(args: string[] = []): Promise<void> {
  server = new OrdinaryServer(
    { OLLIE_OPENAI_KEY: key },
    {
      rules: [
        {
          match: { user: "/(.*)/s" },
          do: [{ calls: [{ name: "shell", args: { command: "$1", timeout: 1 } }] }],
        },
        { match: { result: "/(.*)/s" }, do: [{ text: "$1" }] },
      ],
    },
  );
  await server.start(args);
  await written("session/new", "name=s\n");
}

async function written(path: string, text: string): Promise<void> {
  const { status, stderr } = await server.p9(["write", path], text);
  if (status !== 0) throw new Error(stderr);
}

async function read(path: string): Promise<string> {
  return (await server.p9(["read", path])).stdout;
}

describe.skipIf(lacksOrdinary).each([
  ["in the sandbox", []],
  ["without a sandbox", ["--yolo"]],
])("a call %s", (_where, args) => {
  test.each([
    ["forks without end", ":(){ :|:& };:; sleep 60"],
    ["forks without end, ends at once, and takes no signal but KILL", "f(){ trap '' TERM HUP; f & f & }; f"],
  ])(
    "that %s leaves the server to others, and nothing of it stays",
    async (_how, command) => {
      await start(args);
      await written("s/s/prompt", command);
      let answers = 0;
      while ((await read("s/s/state")) !== "idle\n") {
        expect(await read("version")).toContain("protocol: 9P2000");
        answers++;
      }
      expect(answers).toBeGreaterThan(0);
      expect(await read("s/s/reply")).toContain("fork");
      await until(
        "its processes are gone",
        () => !server.running().some((words) => words.includes("f & f") || words.includes(":|:")),
      );
      await written("s/s/prompt", "echo the next one runs");
      await read("s/s/idlewait");
      expect(await read("s/s/reply")).toContain("the next one runs");
    },
    60_000,
  );

  test("that prints as fast as it can fills neither memory nor disk", async () => {
    await start(args);
    await written(
      "s/s/prompt",
      "yes 'this is a line of output' & yes 'and this one of another' >&2 & dd if=/dev/zero bs=1M status=none",
    );
    await read("s/s/idlewait");
    const reply = await read("s/s/reply");
    expect(reply).toContain("killed after 1 s");
    expect(Buffer.byteLength(reply)).toBeLessThan(20 * 1024);
    const peak = Number(/VmHWM:\s+(\d+)/.exec(readFileSync(`/proc/${server.pid}/status`, "utf8"))![1]) / 1024;
    expect(peak).toBeLessThan(400);
    const kept = /(\/\S+\/output\/\S+\.txt\S*?)[\s\])]/.exec(reply)![1]!;
    expect(statSync(kept).size).toBeLessThanOrEqual(10 * 1024 * 1024);
  });

  test("that crashes leaves no core file", async () => {
    await start(args);
    await written("s/s/prompt", "ulimit -S -c; kill -SEGV $$");
    await read("s/s/idlewait");
    expect(await read("s/s/reply")).toStartWith("0\n");
  });
});

describe.skipIf(lacksOrdinary)("a server", () => {
  test("tells other programs of its user nothing of its environment and memory", async () => {
    await start();
    const attempts = ["environ", "auxv"].map((name) => `cat /proc/${server.pid}/${name}`);
    attempts.push(
      `head -c 1 /proc/${server.pid}/mem`,
      `ls /proc/${server.pid}/fd`,
      `ls /proc/${server.pid}/map_files`,
    );
    for (const attempt of attempts) {
      const { status, stdout, stderr } = await server.run(["sh", "-c", attempt]);
      expect(`${attempt}: ${status} ${stdout}`).toMatch(/: [^0]\d* $/);
      expect(stderr).toMatch(/Permission denied|Operation not permitted/);
    }
  });

  test("can still be seen and ended by them", async () => {
    await start();
    const { pid } = server;
    const { stdout } = await server.run([
      "sh",
      "-c",
      `tr '\\0' ' ' </proc/${pid}/cmdline; kill ${pid} && echo told`,
    ]);
    expect(stdout).toContain("olliesrv fgstart told");
    await until("it is gone", () => !isThere(pid));
  });
});

/** A zombie is not. */
function isThere(pid: number): boolean {
  try {
    return !/^State:\s+[ZX]/m.test(readFileSync(`/proc/${pid}/status`, "utf8"));
  } catch {
    return false;
  }
}
