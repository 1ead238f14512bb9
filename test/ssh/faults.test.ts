/** Ways that lead nowhere: each ends by itself, with a code and a sentence. And ways through other hosts. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { randomBytes } from "node:crypto";
import { existsSync } from "node:fs";
import { createServer, connect as dial, type Server } from "node:net";
import { join } from "node:path";
import { connect } from "../../src/ssh/connect.ts";
import type { SshTarget } from "../../src/ssh/transport.ts";
import { until } from "../until.ts";
import { freePort, type Host, keygen, lacksSshd, never, People, refusal, Site } from "./server.ts";

const missing = lacksSshd();
const servers: Server[] = [];
afterAll(() => {
  for (const server of servers) server.close();
});

/** Something that accepts connections, and what it does with them. */
async function listener(greet: (socket: import("node:net").Socket) => void): Promise<{ port: number }> {
  const server = createServer((socket) => {
    socket.on("error", () => {});
    greet(socket);
  });
  servers.push(server);
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return server.address() as { port: number };
}

describe.skipIf(missing).each(["ssh2", "openssh"] as const)("%s", (via) => {
  let site: Site;
  let host: Host;
  beforeAll(async () => {
    site = new Site();
    host = await site.host();
  });
  afterAll(() => site[Symbol.dispose]());
  const target = (end: { port: number }, lines: string[] = [], more: Partial<SshTarget> = {}) =>
    site.target(site.config(end, ...lines), { via, ...more });
  const failure = (...args: Parameters<typeof target>) => refusal(connect(target(...args), undefined, never));
  const works = async (wanted: SshTarget, people?: People) => {
    const connection = await connect(wanted, people, never);
    const channel = await connection.exec("exit 5");
    expect(await channel.closed).toEqual({ code: 5 });
    connection.close();
  };

  test("nothing listens", async () => {
    const port = await freePort();
    const { code, message, retry } = await failure({ port });
    expect({ code, retry }).toEqual({ code: "ssh.refused", retry: true });
    expect(message).toContain(`nothing accepts connections at 127.0.0.1 port ${port}`);
  });

  test("no such host", async () => {
    const { code, message } = await failure(host, [], { name: "no-such-host.invalid" });
    expect(code).toBe("ssh.unreachable");
    expect(message).toContain("there is no address for no-such-host.invalid");
  });

  test("somebody listens and never says a word", async () => {
    const port = await listener(() => {});
    const { code, message, retry } = await failure(port, [], { connectTimeout: 700 });
    expect({ code, retry }).toEqual({ code: "ssh.timeout", retry: true });
    expect(message).toContain("does not answer");
  });

  test("a server that stands still in the middle of the handshake", async () => {
    const port = await listener((socket) => socket.write("SSH-2.0-Still\r\n"));
    expect((await failure(port, [], { connectTimeout: 700 })).code).toBe("ssh.timeout");
  });

  test("a server that hangs up before it says anything, as with MaxStartups", async () => {
    const port = await listener((socket) => socket.end());
    const { code, message, retry } = await failure(port);
    expect({ code, retry }).toEqual({ code: "ssh.refused", retry: true });
    expect(message).toContain("MaxStartups");
  });

  test("MaxStartups of a real sshd", async () => {
    const busy = await site.host(["MaxStartups 1:100:1"]);
    const held = dial(busy.port, "127.0.0.1");
    held.on("error", () => {});
    await until("the place is taken", () => busy.sessions().length > 0);
    const { code, retry } = await failure(busy);
    expect({ code, retry }).toEqual({ code: "ssh.refused", retry: true });
    held.destroy();
  });

  test("something that is no SSH server", async () => {
    const port = await listener((socket) => socket.end("HTTP/1.1 400 Bad Request\r\n\r\n"));
    expect((await failure(port)).code).toStartWith("ssh.re");
  });

  test("whoever asked may go away at any time", async () => {
    const port = await listener(() => {});
    const gone = new AbortController();
    const reason = new Error("enough");
    setTimeout(() => gone.abort(reason), 100);
    await expect(connect(target(port), undefined, gone.signal)).rejects.toBe(reason);
    await expect(connect(target(host), undefined, AbortSignal.abort(reason))).rejects.toBe(reason);
  });

  test("whoever asked may go away while a person is asked", async () => {
    const gone = new AbortController();
    const reason = new Error("enough");
    const key = keygen(join(site.folder, `pondering-${via}`), "-N", "secret");
    site.authorize(`${site.key}.pub`, `${key}.pub`);
    const people = new People();
    people.secret = () => {
      gone.abort(reason);
      return new Promise(() => {});
    };
    const attempt = connect(target(host, [`IdentityFile ${key}`]), people, gone.signal);
    await expect(attempt).rejects.toBe(reason);
  });

  test("a name that is an option", async () => {
    const file = join(site.folder, `touched-${via}`);
    const { code } = await failure(host, [], { name: `-oProxyCommand=touch ${file}` });
    expect(code).toBe("ssh.config");
    expect(existsSync(file)).toBe(false);
  });

  test("a configuration that makes no sense", async () => {
    const { code, message } = await failure(host, ["Nonsense yes"]);
    expect(code).toBe("ssh.config");
    expect(message).toContain("onsense");
  });

  describe("through other hosts", () => {
    test("one, whose key is checked like any other", async () => {
      const jump = await site.host();
      const via_ = `ProxyJump root@127.0.0.1:${jump.port}`;
      const everywhere = ["Host 127.0.0.1", `IdentityFile ${site.key}`, "IdentityAgent none"];
      await works(target(host, [via_, ...everywhere]));

      const stranger = await site.host([], { known: false });
      const unknown = [`ProxyJump root@127.0.0.1:${stranger.port}`, ...everywhere];
      expect((await failure(host, unknown)).code).toStartWith("ssh.");
      const people = new People([], true);
      await works(target(host, unknown, { newHostKey: "ask" }), people);
      expect(people.asked.join()).toContain(stranger.fingerprint());
    });

    test("two, one behind the other", async () => {
      const [one, two] = [await site.host(), await site.host()];
      const chain = `ProxyJump root@127.0.0.1:${one.port},root@127.0.0.1:${two.port}`;
      const lines = [chain, "Host 127.0.0.1", `IdentityFile ${site.key}`, "IdentityAgent none"];
      const connection = await connect(target(host, lines), undefined, never);
      const channel = await connection.exec("sleep 0.5; exec cat");
      const bytes = randomBytes(6 << 20);
      const sent = (async () => {
        for (let at = 0; at < bytes.length; at += 100_000)
          await channel.write(bytes.subarray(at, at + 100_000));
        channel.end();
      })();
      const back: Uint8Array[] = [];
      for await (const piece of channel.stdout) back.push(piece);
      await sent;
      expect(Buffer.concat(back).equals(bytes)).toBe(true);
      connection.close();
      await until(
        "both took part",
        () => /Accepted publickey/.test(one.log) && /Accepted publickey/.test(two.log),
      );
    });

    test("one that is gone breaks the connection", async () => {
      const jump = await site.host();
      const lines = [`ProxyJump root@127.0.0.1:${jump.port}`];
      const everywhere = ["Host 127.0.0.1", `IdentityFile ${site.key}`, "IdentityAgent none"];
      const connection = await connect(target(host, [...lines, ...everywhere]), undefined, never);
      const channel = await connection.exec("exec sleep 1000");
      for (const pid of jump.sessions()) process.kill(pid, "SIGKILL");
      expect((await connection.closed) as object).toMatchObject({ code: "ssh.dropped" });
      expect((await channel.closed).fault as object).toMatchObject({ code: "ssh.dropped" });
    });

    test("one that has no way on", async () => {
      const jump = await site.host();
      const lines = [`ProxyJump root@127.0.0.1:${jump.port}`];
      const everywhere = ["Host 127.0.0.1", `IdentityFile ${site.key}`, "IdentityAgent none"];
      const { code, retry } = await failure({ port: await freePort() }, [...lines, ...everywhere]);
      expect({ code, retry }).toEqual({ code: "ssh.unreachable", retry: true });
    });

    test("a circle", async () => {
      const circle = ["ProxyJump g", "Host g", "HostName 127.0.0.1", "ProxyJump h"];
      const { code, message } = await failure(host, circle);
      expect(code).toBe("ssh.config");
      expect(message).toContain("circle");
    });

    test("by a command, whose words are not lost", async () => {
      const jump = await site.host();
      const inner = site.config(jump, "BatchMode yes", `UserKnownHostsFile ${site.knownHosts}`);
      await works(target(host, [`ProxyCommand ssh -F ${inner} -W %h:%p h`]));
      const { code, message } = await failure(host, ["ProxyCommand echo 'gate is shut' >&2; exit 3"]);
      expect(code).toStartWith("ssh.");
      if (via === "ssh2") expect(message).toContain("gate is shut");
    });
  });
});
