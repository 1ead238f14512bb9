/** Attempts on sockets: the owner's, other agents', the broker's, and those of other programs of the user. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { existsSync, mkdirSync, readdirSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { lacksPrograms } from "../../needs.ts";
import { until } from "../harness.ts";
import { contentOf, hosts, perl, Victim } from "./victim.ts";

/** Listens on a socket (`@` in front: an abstract one) and says `REACHED` to who connects or sends. */
const listener = `
my ($path, $type) = @ARGV;
(my $name = $path) =~ s/^@/\\0/;
socket(S, AF_UNIX, $type eq "dgram" ? SOCK_DGRAM : SOCK_STREAM, 0) or die $!;
bind(S, sockaddr_un($name)) or die $!;
$| = 1;
if ($type eq "dgram") { print "listens\\n"; while (recv(S, my $got, 100, 0)) { print "REACHED\\n" } exit }
listen(S, 5) or die $!;
print "listens\\n";
while (accept(C, S)) { print "REACHED\\n"; syswrite(C, "REACHED\\n"); close C }
`;

const connect = perl(
  '(my $n = $ENV{TARGET}) =~ s/^@/\\0/; socket(S, AF_UNIX, SOCK_STREAM, 0) or die $!; connect(S, sockaddr_un($n)) or die $!; print "CONNECTED"; print while <S>',
);
const send = perl(
  'socket(S, AF_UNIX, SOCK_DGRAM, 0) or die $!; send(S, "x", 0, sockaddr_un($ENV{TARGET})) or die $!; print "SENT"',
);

const { full, tmp, fallback } = hosts;

describe.each(Object.entries({ full, tmp, fallback }))("%s host", (_name, host) => {
  let victim: Victim;
  let broker: string;
  const children: ReturnType<Victim["server"]["spawn"]>[] = [];
  const heard = new Map<string, string>();

  /** A program of the user that listens there. */
  async function listen(path: string, type = "stream"): Promise<void> {
    const child = victim.server.spawn(["perl", "-MSocket", "-e", listener, path, type]);
    children.push(child);
    heard.set(path, "");
    void (async () => {
      for await (const chunk of child.stdout)
        heard.set(path, heard.get(path) + new TextDecoder().decode(chunk));
    })();
    await until(`a listener at ${path}`, () => heard.get(path)!.includes("listens"));
  }

  /** Nobody has got through. */
  async function untouched(result: string): Promise<void> {
    const reached = [...heard].filter(([, text]) => text.includes("REACHED")).map(([path]) => path);
    for (const path of heard.keys()) heard.set(path, "");
    expect(reached).toEqual([]);
    expect(result).not.toMatch(/CONNECTED|SENT|REACHED/);
    expect(result).toMatch(
      /permission denied|connection refused|no such (file|socket)|not a socket|not permitted|may not connect/i,
    );
  }

  const at = (target: string, command: string) => victim.run(`export TARGET='${target}'\n${command}`);

  beforeAll(async () => {
    victim = await Victim.start(host);
    broker = join(dirname(victim.socket), "elevate.sock");
    await listen(broker);
  });
  afterAll(async () => {
    for (const child of children) child.kill("SIGKILL");
    await victim.stop();
  });

  test.each([
    ["by its path", connect],
    ["by a link to it", `ln -s "$TARGET" s; export TARGET=./s; ${connect}`],
    ["by a link to its folder", `ln -s "\${TARGET%/*}" d; export TARGET=./d/9p; ${connect}`],
    ["by a hard link", `ln "$TARGET" h && export TARGET=./h; ${connect}`],
    ["from inside its folder", `cd "\${TARGET%/*}"; export TARGET=9p; ${connect}`],
    ["by the server's root", `export TARGET=/proc/${"$(pgrep -n olliesrv)"}/root$TARGET; ${connect}`],
    ["moved away", `mv "$TARGET" m; export TARGET=./m; ${connect}`],
    ["by ollie-9p", 'ollie-9p -a "unix!$TARGET" ls'],
    ["by ollie-9p that is told so", 'OLLIE_ADDR="unix!$TARGET" ollie-9p read metrics'],
    ["by o", 'OLLIE_ADDR="unix!$TARGET" o approve --list'],
    ["with its token", `cat "$TARGET.token"; ${connect}`],
  ])("the owner's socket, %s", async (_how, command) => {
    const result = await at(victim.socket, command);
    await untouched(result);
    expect(result).not.toMatch(/[0-9a-f]{64}/);
    expect(await victim.read("version")).toContain("ollie");
  });

  test("the owner's socket is not given away by the list of sockets, nor are those of other agents", async () => {
    const other = await victim.session();
    await victim.run("true", other);
    const annex = `${victim.socket}.tools`;
    const paths = existsSync(annex) ? readdirSync(annex).map((name) => join(annex, name)) : [];
    const own = /unix!(\S+)/.exec(await victim.run("echo $OLLIE_ADDR"))?.[1];
    expect(paths.length > 1).toBe(own !== undefined);
    for (const path of paths.filter((path) => path !== own)) await untouched(await at(path, connect));
  });

  test("the loopback address of another agent needs that one's token", async () => {
    const other = await victim.session();
    const address = (await victim.run("echo $OLLIE_ADDR", other)).trim();
    if (!address.startsWith("tcp!")) return;
    const result = await victim.run(`OLLIE_ADDR='${address.split("\n")[0]}' ollie-9p ls session`);
    expect(result).toMatch(/token/);
    expect(result).not.toContain(other);
  });

  test("the broker's", async () => {
    await untouched(await at(broker, connect));
  });

  test("a broker of one's own in its place", async () => {
    await untouched(
      await at(
        broker,
        `rm "$TARGET"; ${perl('socket(S, AF_UNIX, SOCK_STREAM, 0) or die $!; bind(S, sockaddr_un($ENV{TARGET})) or die $!; print "CONNECTED"')}`,
      ),
    );
    expect(existsSync(broker)).toBe(true);
  });

  test.each([
    ["the user's runtime folder", "bus"],
    ["a folder there that has been made", "systemd/private"],
  ])("a service in %s", async (_where, name) => {
    const path = join(dirname(victim.socket), "..", name);
    mkdirSync(dirname(path), { recursive: true });
    victim.server.give(dirname(path));
    await listen(path);
    await untouched(await at(path, connect));
  });

  test("a service in /tmp, also as a datagram", async () => {
    const path = `/tmp/ollie-redteam-${process.pid}-${_name}`;
    await listen(path);
    await listen(`${path}-dgram`, "dgram");
    await untouched(await at(path, connect));
    await untouched(await at(`${path}-dgram`, send));
    await victim.server.run(["rm", path, `${path}-dgram`]);
  });

  test("a service anywhere else", async () => {
    for (const path of [
      join(victim.home, "service"),
      join(victim.home, ".ssh/control"),
      join(victim.outside, "service"),
    ]) {
      await listen(path);
      // Launches of the same second share what was found of sockets, in a session.
      await untouched(await victim.run(`export TARGET=${path}\n${connect}`, await victim.session()));
    }
  });

  test("an abstract socket, as X11 has", async () => {
    const path = `@/tmp/.X11-unix/X${process.pid}${_name}`;
    await listen(path);
    await untouched(await at(path, connect));
  });

  test.each([
    ["the runtime folder", () => join(dirname(victim.socket), "..", "later")],
    ["/tmp", () => `/tmp/ollie-redteam-later-${process.pid}-${_name}`],
    ["a folder of logins", () => join(victim.home, ".ssh/later")],
    ["the home folder", () => join(victim.home, "later")],
    ["another session's temporary folder", () => join(victim.home, ".local/state/ollie/tmp/later")],
  ])("a service in %s that listens only when the call runs", async (_where, pathOf) => {
    const path = pathOf();
    const session = await victim.session();
    const out = join(victim.work, `out-${session}`);
    const go = join(victim.work, `go-${session}`);
    await victim.occupy(
      `echo runs; export TARGET='${path}'; until [ -e ${go} ]; do sleep 0.02; done; ${connect} >${out} 2>&1; echo done >>${out}`,
      session,
    );
    await listen(path);
    await victim.server.run(["touch", go]);
    await until("the attempt", () => contentOf(out).endsWith("done\n"));
    await victim.read(`s/${session}/idlewait`);
    await untouched(contentOf(out));
    await victim.server.run(["rm", path]);
  });

  describe.skipIf(lacksPrograms("tmux"))("tmux", () => {
    afterAll(async () => {
      for (const name of ["default", "later"]) await victim.server.run(["tmux", "-L", name, "kill-server"]);
    });

    test("the user's server, which would run anything", async () => {
      const trace = join(victim.outside, "trace");
      expect((await victim.server.run(["tmux", "new-session", "-d", "-s", "main"])).status).toBe(0);
      const socket = (await victim.server.run(["tmux", "display", "-p", "#{socket_path}"])).stdout.trim();
      for (const how of ["", `-S '${socket}'`]) {
        const result = await victim.run(
          `tmux ${how} send-keys -t main 'touch ${trace}' Enter; tmux ${how} run-shell 'touch ${trace}'`,
        );
        expect(result).toMatch(
          /no server running|error connecting|no such file|not permitted|denied|read-only/i,
        );
      }
      await untouched(await at(socket, connect));
      const windows = await victim.server.run(["tmux", "list-windows", "-a"]);
      expect(windows.stdout.trim().split("\n")).toHaveLength(1);
      expect(existsSync(trace)).toBe(false);
    });
  });

  test.skipIf(lacksPrograms("ssh-agent"))("the user's ssh-agent", async () => {
    const { stdout } = await victim.server.run(["ssh-agent", "-s"]);
    const [, socket, pid] = /SSH_AUTH_SOCK=([^;]+);.*SSH_AGENT_PID=(\d+)/s.exec(stdout)!;
    try {
      await untouched(await at(socket!, connect));
      const result = await victim.run(`SSH_AUTH_SOCK='${socket}' ssh-add -l; echo "[$SSH_AUTH_SOCK]"`);
      expect(result).toMatch(/error connecting|could not open/i);
    } finally {
      process.kill(Number(pid));
    }
  });

  test("what the session's env names", async () => {
    const path = join(victim.outside, "agent.sock");
    await listen(path);
    const session = await victim.session(
      `env.SSH_AUTH_SOCK=${path} env.DBUS_SESSION_BUS_ADDRESS=unix:path=${path}`,
    );
    await untouched(await victim.run(`export TARGET=$SSH_AUTH_SOCK; ${connect}`, session));
  });

  test("tokens are the owner's alone", () => {
    expect(readFileSync(`${victim.socket}.token`, "utf8")).toMatch(/^[0-9a-f]{64}\n$/);
  });
});
