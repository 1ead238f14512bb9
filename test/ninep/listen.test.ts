/** The unix socket: whose it is, who may come in, and what happens to one that was left behind. */
import { afterEach, describe, expect, test } from "bun:test";
import {
  chmodSync,
  chownSync,
  existsSync,
  mkdirSync,
  renameSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { dial } from "../../src/ninep/dial.ts";
import { type Listener, type ListenOptions, listenUnix } from "../../src/ninep/listen.ts";
import { ramfs } from "../../src/ninep/ramfs.ts";
import { Server } from "../../src/ninep/server.ts";
import { cleanUp, cleanup, temporary } from "./serve.ts";

afterEach(cleanUp);

const message = (promise: Promise<unknown>) =>
  promise.then(
    () => "no error",
    (error: Error) => error.message,
  );
const mode = (path: string) => statSync(path).mode & 0o7777;
const isRoot = process.geteuid!() === 0;

async function listen(path: string, options?: ListenOptions): Promise<Listener> {
  const server = new Server(ramfs());
  const listener = await listenUnix(path, server, options);
  cleanup(async () => {
    listener.stop();
    await server.close();
  });
  return listener;
}

const answers = async (path: string) => {
  const client = await dial(`unix!${path}`);
  await client.stat("");
  client.close();
};

/** A socket whose server is dead. */
function stale(path: string): void {
  const listener = Bun.listen({ unix: path, socket: { data() {} } });
  // Stopping removes the file at the path; what is elsewhere stays, as after a crash.
  renameSync(path, `${path}.kept`);
  listener.stop(true);
  renameSync(`${path}.kept`, path);
}

describe("the folder", () => {
  test("is made for its owner alone, and so is the socket", async () => {
    const folder = join(temporary(), "run", "ollie");
    await listen(join(folder, "9p"), { checkUid: true });
    expect([mode(folder), mode(join(folder, "9p"))]).toEqual([0o700, 0o600]);
    await answers(join(folder, "9p"));
  });

  test("is closed to others if nothing else is in it", async () => {
    const folder = join(temporary(), "ollie");
    mkdirSync(folder);
    chmodSync(folder, 0o755);
    await listen(join(folder, "9p"));
    expect(mode(folder)).toBe(0o700);
  });

  test("is left alone and refused if it is open and serves others", async () => {
    const folder = join(temporary(), "shared");
    mkdirSync(folder);
    writeFileSync(join(folder, "other"), "");
    chmodSync(folder, 0o755);
    expect(await message(listen(join(folder, "9p")))).toContain(
      "open to others: make it 0700 or choose another",
    );
    expect(mode(folder)).toBe(0o755);
  });

  test("is refused if it is a link or a file", async () => {
    const root = temporary();
    mkdirSync(join(root, "real"));
    symlinkSync(join(root, "real"), join(root, "link"));
    writeFileSync(join(root, "file"), "");
    expect(await message(listen(join(root, "link", "9p")))).toContain("is no folder");
    expect(await message(listen(join(root, "file", "9p")))).toContain("is no folder");
  });

  if (isRoot) {
    test("is refused if it is another user's", async () => {
      const folder = join(temporary(), "theirs");
      mkdirSync(folder, { mode: 0o700 });
      chownSync(folder, 65534, 65534);
      expect(await message(listen(join(folder, "9p")))).toContain("belongs to user 65534");
    });
  }
});

describe("the socket", () => {
  test("of a dead server is replaced", async () => {
    const path = join(temporary(), "9p");
    stale(path);
    expect(await message(dial(`unix!${path}`))).toContain("its server has ended");
    await listen(path);
    await answers(path);
  });

  test("of a living server is not touched", async () => {
    const path = join(temporary(), "9p");
    await listen(path);
    expect(await message(listen(path))).toBe(`a server is listening on ${path} already`);
    await answers(path);
  });

  test("is taken by one of many that start at once, and the others find it taken", async () => {
    const path = join(temporary(), "9p");
    stale(path);
    const results = await Promise.all(Array.from({ length: 8 }, () => message(listen(path))));
    expect(results.filter((result) => result === "no error")).toHaveLength(1);
    expect(results.filter((result) => result.endsWith("already"))).toHaveLength(7);
    await answers(path);
  });

  test("is never put in place of a file", async () => {
    const path = join(temporary(), "9p");
    writeFileSync(path, "precious");
    expect(await message(listen(path))).toContain("is no socket");
    expect(existsSync(path)).toBe(true);
  });

  test("is gone after stop, and connections live on", async () => {
    const path = join(temporary(), "9p");
    const listener = await listen(path);
    const client = await dial(`unix!${path}`);
    cleanup(() => client.close());
    listener.stop();
    expect(existsSync(path)).toBe(false);
    expect(await message(dial(`unix!${path}`))).toContain("is the server running?");
    expect(await client.stat("")).toMatchObject({ name: "/" });
  });

  test("has a path of at most 107 bytes", async () => {
    const folder = temporary();
    const fits = join(folder, "s".repeat(107 - folder.length - 1));
    await listen(fits);
    await answers(fits);
    expect(await message(listen(`${fits}s`))).toContain("longer than 107 bytes");
  });
});

describe("the peer", () => {
  test("is known by its credentials, whatever it claims", async () => {
    const path = join(temporary(), "9p");
    const peers: object[] = [];
    const server = new Server((peer) => {
      peers.push(peer);
      return ramfs();
    });
    const listener = await listenUnix(path, server, { checkUid: true });
    cleanup(() => listener.stop());
    const client = await dial(`unix!${path}`, { uname: "somebody", aname: "tree" });
    client.close();
    expect(peers).toEqual([
      {
        connection: 1,
        uid: process.geteuid!(),
        gid: process.getegid!(),
        pid: process.pid,
        uname: "somebody",
        aname: "tree",
        iounit: 1048552,
      },
    ]);
  });

  if (isRoot && Bun.which("setpriv")) {
    test("of another user is turned away, also where the file system lets it in", async () => {
      const path = join(temporary(), "9p");
      const denied: string[] = [];
      await listen(path, { checkUid: true, onDenied: (_who, reason) => denied.push(reason) });
      chmodSync(join(path, ".."), 0o777);
      chmodSync(path, 0o777);
      // The kernel lets it connect; the server then hangs up without having said or read anything.
      const script = `
        const { resolve, promise } = Promise.withResolvers();
        const socket = { data() { console.log("data") }, close: resolve };
        await Bun.connect({ unix: ${JSON.stringify(path)}, socket }).then((it) => it.write("hello") && promise, () => {});
        console.log("closed");`;
      const command = ["setpriv", "--reuid", "65534", "--clear-groups", process.execPath, "-e", script];
      const child = Bun.spawn(command, { cwd: "/", stdout: "pipe", stderr: "pipe" });
      expect(await new Response(child.stderr).text()).toBe("");
      expect(await new Response(child.stdout).text()).toBe("closed\n");
      expect(denied).toEqual(["user 65534 is not user 0, whose server this is"]);
      await answers(path);
    });
  }
});
