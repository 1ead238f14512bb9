/** `ollie-9p` against a 9P server that knows nothing of ollie, and against olliesrv. */
import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import { createHash, randomBytes } from "node:crypto";
import { join } from "node:path";
import { listenUnix } from "../../src/ninep/listen.ts";
import { ramfs } from "../../src/ninep/ramfs.ts";
import { Server } from "../../src/ninep/server.ts";
import {
  build,
  dist,
  Home,
  type Outcome,
  type RunOptions,
  startServer,
  succeeded,
  type TestServer,
  until,
} from "./harness.ts";

setDefaultTimeout(60_000);

const client = join(dist, "ollie-9p");

describe("on a plain file system", () => {
  let home: Home;
  let stop: () => Promise<void>;
  beforeAll(async () => {
    await build();
    home = new Home();
    const server = new Server(ramfs());
    const listener = await listenUnix(join(home.folder, "ram/9p"), server);
    stop = async () => {
      listener.stop();
      await server.close();
    };
  });
  afterAll(async () => {
    await stop();
    home.remove();
  });

  const p9 = (args: string[], options?: RunOptions): Promise<Outcome> =>
    home.run([client, "-a", `unix!${home.folder}/ram/9p`, ...args], options);
  const ok = async (args: string[], options?: RunOptions) => succeeded(await p9(args, options));

  test("a file is made, written, appended to, read, renamed and removed", async () => {
    await ok(["create", "/note"]);
    await ok(["write", "note"], { stdin: "one\n" });
    await ok(["write", "-a", "note"], { stdin: "two\n" });
    expect(await ok(["read", "/note"])).toBe("one\ntwo\n");
    await ok(["write", "note"], { stdin: "new\n" });
    expect(await ok(["read", "note"])).toBe("new\n");
    await ok(["mv", "note", "letter"]);
    expect(await ok(["ls"])).toBe("letter\n");
    await ok(["rm", "letter"]);
    expect(await ok(["ls", "/"])).toBe("");
  });

  test("bytes come back as they were sent, also those that no message can hold at once", async () => {
    const bytes = randomBytes(5_000_001);
    await ok(["create", "big"]);
    await ok(["write", "big"], { stdin: bytes });
    const read = Bun.spawn([client, "-a", `unix!${home.folder}/ram/9p`, "read", "big"], { env: home.env });
    const got = createHash("sha256").update(Buffer.from(await new Response(read.stdout).arrayBuffer()));
    expect(got.digest("hex")).toBe(createHash("sha256").update(bytes).digest("hex"));
    await ok(["rm", "big"]);
  });

  test("directories are listed, described and removed with what is in them", async () => {
    await ok(["create", "-d", "d"]);
    await ok(["create", "-d", "d/e"]);
    await ok(["create", "d/e/f"]);
    await ok(["write", "d/e/f"], { stdin: "12345" });
    expect(await ok(["ls", "d"])).toBe("e\n");
    expect(await ok(["ls", "-l", "d/e"])).toMatch(
      /^-rw-rw-rw- +\S+ +\S+ 5 \d{4}-\d\d-\d\d \d\d:\d\d:\d\d f\n$/,
    );
    expect(await ok(["ls", "-l", "-d", "d"])).toMatch(/^drwx.* d\n$/);
    expect(await ok(["ls", "d/e/f"])).toBe("d/e/f\n");
    expect(JSON.parse(await ok(["ls", "--json", "d/e"]))).toMatchObject([
      { name: "f", length: 5, mode: "-rw-rw-rw-" },
    ]);
    expect(await ok(["stat", "d/e/f"])).toMatch(/^name f\nmode -rw-rw-rw-\nlength 5\nmtime \d{4}-/);
    expect(JSON.parse(await ok(["stat", "--json", "d"]))).toMatchObject({ name: "d", length: 0 });
    expect((await p9(["rm", "d"])).status).toBe(1);
    await ok(["rm", "-r", "d"]);
    expect(await ok(["ls"])).toBe("");
  });

  test("-f goes on as the file grows, until Ctrl-C", async () => {
    await ok(["create", "log"]);
    await ok(["write", "log"], { stdin: "a\nbb\n" });
    const argv = [client, "-a", `unix!${home.folder}/ram/9p`, "read", "-f", "--offset=-3", "log"];
    const follower = Bun.spawn(argv, { env: home.env, stderr: "pipe" });
    let seen = "";
    void (async () => {
      for await (const chunk of follower.stdout) seen += Buffer.from(chunk).toString();
    })();
    await until("the end is shown", () => seen === "bb\n");
    await ok(["write", "-a", "log"], { stdin: "more" });
    await until("what was added is shown", () => seen === "bb\nmore");
    follower.kill("SIGINT");
    expect(await follower.exited).toBe(130);
    expect(await new Response(follower.stderr).text()).toBe("");
    await ok(["rm", "log"]);
  });

  test("several files are printed one after the other; an offset counts for the last", async () => {
    for (const name of ["x", "y"]) {
      await ok(["create", name]);
      await ok(["write", name], { stdin: `${name}1\n${name}2\n` });
    }
    expect(await ok(["read", "x", "y"])).toBe("x1\nx2\ny1\ny2\n");
    expect(await ok(["read", "-o", "3", "x", "y"])).toBe("x1\nx2\ny2\n");
    expect(await ok(["read", "--offset=-100", "y"])).toBe("y1\ny2\n");
    expect(await ok(["read", "--offset=-4", "y"])).toBe("y2\n");
    await ok(["rm", "x"]);
    await ok(["rm", "y"]);
  });

  test("when nobody reads on, it ends without a word", async () => {
    await ok(["create", "long"]);
    await ok(["write", "long"], { stdin: "line\n".repeat(500_000) });
    const { stdout, stderr } = await home.run([
      "/bin/sh",
      "-c",
      `'${client}' -a 'unix!${home.folder}/ram/9p' read long | head -n 1`,
    ]);
    expect(stdout).toBe("line\n");
    expect(stderr).toBe("");
    await ok(["rm", "long"]);
  });

  test.each([
    [["read", "nothing"], /^ollie-9p: file does not exist.*\n$/],
    [["read", "/"], /^ollie-9p: Is a directory.*\n$/],
    [["ls", "no/such"], /^ollie-9p: file does not exist.*\n$/],
    [["rm", "/"], /^ollie-9p: Is a directory: rm -r .*\n$/],
    [["rm", "nothing"], /^ollie-9p: file does not exist.*\n$/],
  ])("%j fails with the server's words", async (args, words) => {
    const { status, stdout, stderr } = await p9(args);
    expect(stderr).toMatch(words);
    expect(stdout).toBe("");
    expect(status).toBe(1);
  });

  test.each([
    [["mv", "a/b", "c/d"], "within its directory"],
    [["read", "-f", "-l", "x"], "exclude each other"],
    [["read", "-o", "many", "x"], "no number of bytes"],
  ])("%j is wrong use", async (args, words) => {
    const { status, stderr } = await p9(args);
    expect(stderr).toContain(words);
    expect(status).toBe(2);
  });
});

describe("on olliesrv", () => {
  let server: TestServer;
  beforeAll(async () => {
    server = await startServer();
  });
  afterAll(() => server.stop());

  test("it finds the server by itself, by OLLIE_ADDR, and by the env file", async () => {
    const elsewhere = { XDG_RUNTIME_DIR: "/nonexistent" };
    expect((await server.p9("read", "version")).stdout).toContain("protocol: 9P2000");
    const named = await server.home.run([client, "read", "version"], {
      env: { ...elsewhere, OLLIE_ADDR: server.address },
    });
    expect(named.stdout).toContain("protocol: 9P2000");
    const other = new Home();
    other.configure(`OLLIE_ADDR='${server.address}'\n`);
    expect((await other.run([client, "read", "version"], { env: elsewhere })).stdout).toContain(
      "protocol: 9P2000",
    );
    other.remove();
  });

  test("nobody there is said in words, with the address", async () => {
    const { status, stderr } = await server.home.run([client, "-a", "unix!/nonexistent/9p", "ls"]);
    expect(stderr).toMatch(/^ollie-9p: no server answers at unix!\/nonexistent\/9p: .*\n$/);
    expect(status).toBe(1);
    expect((await server.home.run([client, "-a", "nonsense", "ls"])).stderr).toContain("is no address");
  });

  test("a prompt of several lines arrives as one, also when it begins like a verb", async () => {
    const session = await server.create();
    await server.write(`s/${session}/prompt`, "/first\nsecond\n\nfourth\n");
    await server.read(`s/${session}/idlewait`);
    expect(await server.read(`s/${session}/prompt.prev`)).toBe("/first\nsecond\n\nfourth\n");
  });

  test("each line to a ctl file is a request: those before the one that fails are carried out", async () => {
    const session = await server.create();
    const agent = `session/${session}/agent/default`;
    const failed = await server.home.run([client, "write", `${agent}/ctl`], {
      stdin: "maxsteps 7\nnonsense\nmaxsteps 8\n",
    });
    expect(failed.status).toBe(1);
    expect(failed.stderr).toMatch(/^ollie-9p: Invalid argument.*nonsense/);
    expect(await server.read(`${agent}/cfg`)).toContain("maxSteps=7\n");
  });

  test("lines to a ctl file are sent as they come", async () => {
    const session = await server.create();
    const agent = `session/${session}/agent/default`;
    const writer = Bun.spawn([client, "write", `${agent}/ctl`], { env: server.home.env, stdin: "pipe" });
    writer.stdin.write("maxsteps 5\n");
    writer.stdin.flush();
    await until("the first line was carried out", async () =>
      (await server.read(`${agent}/cfg`)).includes("maxSteps=5\n"),
    );
    writer.stdin.end();
    expect(await writer.exited).toBe(0);
  });

  test("Ctrl-C ends a read that waits, and a prompt that was only half written is not sent", async () => {
    const session = await server.create();
    const waiter = Bun.spawn([client, "read", `s/${session}/statewait`], {
      env: server.home.env,
      stderr: "pipe",
    });
    const writer = Bun.spawn([client, "write", `s/${session}/prompt`], {
      env: server.home.env,
      stdin: "pipe",
      stderr: "pipe",
    });
    writer.stdin.write("half a pro");
    writer.stdin.flush();
    await until("both are connected", async () => (await openConnections()) >= 2);
    for (const child of [waiter, writer]) child.kill("SIGINT");
    expect(await waiter.exited).toBe(130);
    expect(await writer.exited).toBe(130);
    expect(await new Response(waiter.stderr).text()).toBe("");
    expect(await new Response(writer.stderr).text()).toBe("");
    expect(await server.read(`s/${session}/state`)).toBe("idle\n");
    expect(await server.read(`s/${session}/prompt.prev`)).toBe("");
  });

  async function openConnections(): Promise<number> {
    const metrics = await server.read("metrics");
    // Not counting the one that asks.
    return Number(/^ollie_9p_connections (\d+)$/m.exec(metrics)?.[1]) - 1;
  }

  test("rdwr prints the answer to what was written", async () => {
    const said = await server.home.run([client, "rdwr", "session/new"], { stdin: "name=asked\n" });
    expect(said).toEqual({ status: 0, stdout: "asked\n", stderr: "" });
  });

  test("a refusal is shown with all its words, also those that no message holds", async () => {
    const session = await server.create();
    const { status, stderr } = await server.home.run(
      [client, "write", `session/${session}/agent/default/ctl`],
      {
        stdin: "fly\n",
      },
    );
    expect(stderr).toMatch(
      /^ollie-9p: Invalid argument: unknown verb fly; there are stop .* maxsteps help\n$/,
    );
    expect(status).toBe(1);
  });

  test("a session or an agent is not removed without -r", async () => {
    await server.create("name=kept");
    for (const path of ["session/kept", "s/kept", "session/kept/agent/default"]) {
      const { status, stderr } = await server.p9("rm", path);
      expect(stderr).toBe("ollie-9p: Is a directory: rm -r removes it with all that is in it\n");
      expect(status).toBe(1);
    }
    expect(await server.read("session/kept/agent/default/state")).toBe("idle\n");
  });

  test("-l of a file that does not wait prints it when it has changed, and only then", async () => {
    const session = await server.create();
    await server.write(`s/${session}/plan`, "one\n");
    const { child, seen } = looping(`session/${session}/plan`);
    const states = looping(`session/${session}/agent/default/state`);
    const waits = looping(`session/${session}/agent/default/idlewait`);
    await until(
      "it is printed",
      () => seen() === "one\n" && states.seen() === "idle\n" && waits.seen() === "idle\n",
    );
    await server.write(`s/${session}/plan`, "two\n");
    await until("what is new is printed", () => seen() === "one\ntwo\n");
    await server.write(`s/${session}/prompt`, "$ sleep 2");
    await until("the state is printed", () =>
      /^idle\n(thinking\n)?calling: shell\n(thinking\n)?idle\n$/.test(states.seen()),
    );
    expect(waits.seen()).toBe("idle\nidle\n");
    expect(seen()).toBe("one\ntwo\n");
    for (const one of [child, states.child, waits.child]) {
      one.kill("SIGINT");
      expect(await one.exited).toBe(130);
    }
  });

  function looping(path: string) {
    const child = Bun.spawn([client, "read", "-l", path], { env: server.home.env, stderr: "ignore" });
    let text = "";
    void (async () => {
      for await (const chunk of child.stdout) text += Buffer.from(chunk).toString();
    })();
    return { child, seen: () => text };
  }

  test("-l shows states in turn, beginning with the present one, until the session is gone", async () => {
    const session = await server.create("name=watched");
    const agent = `session/${session}/agent/default`;
    const watcher = Bun.spawn([client, "read", "-l", `${agent}/state`, `${agent}/statewait`], {
      env: server.home.env,
      stderr: "pipe",
    });
    let seen = "";
    void (async () => {
      for await (const chunk of watcher.stdout) seen += Buffer.from(chunk).toString();
    })();
    await until("the present state is shown", () => seen === "idle\n");
    await server.ask(session, "$ echo hello; sleep 0.5");
    await until("the last state is shown", () => seen.endsWith("\nidle\n"));
    // A state that is over before it was asked for is not told: only the tool's run is long enough to count on.
    expect(seen).toContain("\ncalling: shell\n");
    await server.p9("rm", "-r", `session/${session}`);
    expect(await watcher.exited).toBe(1);
    expect(await new Response(watcher.stderr).text()).toMatch(/^ollie-9p: file does not exist.*\n$/);
  });

  test("lines from a pipe are read one by one, and not beyond", async () => {
    const { stdout, status } = await server.home.run(
      ["/bin/sh", "-c", `'${client}' readline; '${client}' readline -b; cat`],
      { stdin: "one\n\nfirst\n\nsecond\n.\nrest\n" },
    );
    expect(stdout).toBe("one\nfirst\n\nsecond\nrest\n");
    expect(status).toBe(0);
    expect((await server.home.run([client, "readline"], { stdin: "" })).status).toBe(1);
    expect((await server.home.run([client, "readline", "-b"], { stdin: "/stop\nmore\n" })).stdout).toBe(
      "/stop\n",
    );
  });
});
