/** Who may attach: the owner's own processes, those that a sandbox may hold only with the token, nobody without it over TCP. */
import { afterEach, describe, expect, test } from "bun:test";
import { chmodSync, existsSync, readFileSync, renameSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { confinementOf } from "../../src/ninep/confinement.ts";
import { dial } from "../../src/ninep/dial.ts";
import type { Peer } from "../../src/ninep/file.ts";
import { type ListenOptions, listenLoopback, listenUnix } from "../../src/ninep/listen.ts";
import { ramfs } from "../../src/ninep/ramfs.ts";
import { Server } from "../../src/ninep/server.ts";
import { lacksPrograms } from "../needs.ts";
import { cleanUp, cleanup, temporary } from "./serve.ts";

afterEach(cleanUp);

const setpriv = Bun.which("setpriv");
const noPrivs = [setpriv!, "--no-new-privs"];
const python = Bun.which("python3");
const message = (promise: Promise<unknown>) =>
  promise.then(
    () => "no error",
    (error: Error) => error.message,
  );

interface Seen {
  peers: Peer[];
  refused: string[];
}

/** A server on a socket that is its owner's; `seen` is what reaches the tree and the log of refusals. */
async function listen(options: ListenOptions = {}) {
  const path = join(temporary(), "run", "9p");
  const seen: Seen = { peers: [], refused: [] };
  const server = new Server(
    (peer) => {
      seen.peers.push(peer);
      return ramfs();
    },
    { onRefused: (peer, at, error) => seen.refused.push(JSON.stringify([peer, at, error.message])) },
  );
  const troubles: string[] = [];
  const listener = await listenUnix(path, server, {
    checkUid: true,
    ownersOnly: { onNoToken: (fault) => troubles.push(fault.message) },
    ...options,
  });
  cleanup(async () => {
    listener.stop();
    await server.close();
  });
  return { path, server, listener, seen, troubles };
}

/** What a process that runs `before` sees of the server. */
async function attach(path: string, before: string[], options = "undefined"): Promise<string> {
  const script = `
    const { dial } = await import(${JSON.stringify(join(import.meta.dir, "../../src/ninep/dial.ts"))});
    const client = await dial(${JSON.stringify(`unix!${path}`)}, ${options});
    console.log((await client.stat("")).name);
    process.exit();`;
  const child = Bun.spawn([...before, process.execPath, "-e", script], { stdout: "pipe", stderr: "pipe" });
  const [out, error] = await Promise.all([
    new Response(child.stdout).text(),
    new Response(child.stderr).text(),
  ]);
  return /^error: (.*)$/m.exec(error)?.[1] ?? /^NineError: (.*)$/m.exec(error)?.[1] ?? (out || error);
}

describe("a process without no-new-privs", () => {
  test("comes in without a token", async () => {
    const { path } = await listen();
    expect(await attach(path, [], '{ aname: "" }')).toBe("/\n");
  });

  test("is refused with a wrong token, of whatever length, and the token reaches nobody", async () => {
    const { path, seen } = await listen();
    for (const token of ["", "0", "f".repeat(64), "x".repeat(3000)])
      expect(await message(dial(`unix!${path}`, { aname: `token:${token}` }))).toBe(
        "permission denied: the token is wrong; the server may have been started anew since",
      );
    expect(seen.refused).toHaveLength(4);
    expect(seen.refused.join()).not.toContain("ffff");
    expect(seen.peers).toEqual([]);
  });

  test("may name trees as before", async () => {
    const { path, seen } = await listen();
    const client = await dial(`unix!${path}`, { aname: "other" });
    client.close();
    expect(seen.peers.map(({ aname }) => aname)).toEqual(["other"]);
  });
});

describe.skipIf(lacksPrograms("setpriv"))("a process with no-new-privs", () => {
  test("is refused, with what it can do, in as many bytes as an error may have", async () => {
    const { path } = await listen();
    const told = await attach(path, noPrivs, '{ aname: "" }');
    expect(told).toBe(
      "permission denied: no-new-privs is set, as in a sandbox: tools use their OLLIE_ADDR, others the token beside the socket",
    );
    expect(Buffer.byteLength(told)).toBeLessThanOrEqual(128);
  });

  test("is refused whatever it claims", async () => {
    const { path } = await listen();
    for (const options of ['{ aname: "/", uname: "root" }', '{ aname: "owner" }', '{ aname: "token" }'])
      expect(await attach(path, noPrivs, options)).toStartWith("permission denied: no-new-privs");
  });

  test("comes in with the token, which its client finds beside the socket", async () => {
    const { path, seen } = await listen();
    expect(await attach(path, noPrivs)).toBe("/\n");
    expect(seen.peers.map(({ aname }) => aname)).toEqual([""]);
    renameSync(`${path}.token`, `${path}.away`);
    expect(await attach(path, noPrivs)).toStartWith("permission denied: no-new-privs");
  });

  test("is refused with a wrong token", async () => {
    const { path } = await listen();
    writeFileSync(`${path}.token`, `${"0".repeat(64)}\n`);
    expect(await attach(path, noPrivs)).toStartWith("permission denied: the token is wrong");
  });

  test("comes in where the socket is not for owners only", async () => {
    const { path, seen } = await listen({ ownersOnly: undefined, as: { some: "body" } });
    expect(existsSync(`${path}.token`)).toBe(false);
    expect(await attach(path, noPrivs)).toBe("/\n");
    expect(seen.peers[0]!.as).toEqual({ some: "body" });
  });

  test.skipIf(lacksPrograms("python3"))(
    "is judged by what it was when it connected, not by who has its pid",
    async () => {
      const { path } = await listen();
      // It hands its connection to a child, which cannot be told from it, and ends: nobody can look at it any more.
      const script = `
import os, socket, struct, sys
s = socket.socket(socket.AF_UNIX)
s.connect(sys.argv[1])
if os.fork(): os._exit(0)
def send(kind, body):
  s.sendall(struct.pack("<IBH", 7 + len(body), kind, 0xffff if kind == 100 else 1) + body)
  size = struct.unpack("<I", s.recv(4))[0]
  return s.recv(size)
text = lambda t: struct.pack("<H", len(t)) + t
send(100, struct.pack("<I", 8192) + text(b"9P2000"))
print(send(104, struct.pack("<II", 0, 0xffffffff) + text(b"") + text(b""))[5:].decode())
`;
      const child = Bun.spawn([...noPrivs, python!, "-c", script, path], { stdout: "pipe" });
      expect(await new Response(child.stdout).text()).toMatch(
        /^permission denied: (no-new-privs|the process)/,
      );
    },
  );
});

describe("the token", () => {
  test("is 256 bits in a file for its owner alone, another one at each start, and gone at the end", async () => {
    const { path, listener, server } = await listen();
    const file = `${path}.token`;
    const token = readFileSync(file, "utf8");
    expect(token).toMatch(/^[0-9a-f]{64}\n$/);
    expect(statSync(file).mode & 0o777).toBe(0o600);
    listener.stop();
    expect(existsSync(file)).toBe(false);
    const again = await listenUnix(path, server, { ownersOnly: { onNoToken() {} } });
    cleanup(() => again.stop());
    expect(readFileSync(file, "utf8")).not.toBe(token);
  });

  test("takes the place of what a dead server has left, with the mode it must have", async () => {
    const path = join(temporary(), "9p");
    writeFileSync(`${path}.token`, "old");
    chmodSync(`${path}.token`, 0o644);
    const listener = await listenUnix(path, new Server(ramfs()), { ownersOnly: { onNoToken() {} } });
    cleanup(() => listener.stop());
    expect(readFileSync(`${path}.token`, "utf8")).not.toBe("old");
    expect(statSync(`${path}.token`).mode & 0o777).toBe(0o600);
  });
});

describe("a port of the loopback", () => {
  const open = () => {
    const seen: Peer[] = [];
    const server = new Server((peer) => {
      seen.push(peer);
      return ramfs();
    });
    const listener = listenLoopback(server, "c0ffee", { some: "body" });
    cleanup(async () => {
      listener.stop();
      await server.close();
    });
    return { address: `tcp!127.0.0.1!${listener.port}`, seen };
  };

  test("lets nobody in without its token", async () => {
    const { address, seen } = open();
    expect(await message(dial(address))).toStartWith("permission denied: this address needs the token");
    expect(await message(dial(address, { aname: "token:c0ffef" }))).toStartWith(
      "permission denied: the token is wrong",
    );
    expect(seen).toEqual([]);
  });

  test("knows for whom the token speaks", async () => {
    const { address, seen } = open();
    const client = await dial(address, { aname: "token:c0ffee", uname: "root" });
    expect(await client.stat("")).toMatchObject({ name: "/" });
    client.close();
    expect(seen[0]).toMatchObject({ as: { some: "body" }, aname: "", uname: "root" });
  });

  test("nobody there: the error says so", async () => {
    const listener = Bun.listen({ hostname: "127.0.0.1", port: 0, socket: { data() {} } });
    const address = `tcp!127.0.0.1!${listener.port}`;
    listener.stop(true);
    expect(await message(dial(address))).toStartWith(`no server answers at ${address}: `);
  });
});

test("what is no socket cannot be judged", () => {
  expect(confinementOf(-1, 0)).toBe("unknown");
});
