/** Attempts on what other programs of the user share with the machine: terminals, memory, message queues, keyrings. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { until } from "../harness.ts";
import { contentOf, hosts, perl, sys, Victim } from "./victim.ts";

/** Opens a terminal as a terminal program does, prints its path, and everything that is written to it; what it is told is typed there. */
const terminal = `
$| = 1;
open(P, "+<", "/dev/ptmx") or die $!;
my ($n, $u) = (pack("I", 0), pack("i", 0));
ioctl(P, 0x80045430, $n) or die $!;
ioctl(P, 0x40045431, $u) or die $!;
my $path = "/dev/pts/" . unpack("I", $n);
open(S, "+<", $path) or die $!;
print "$path\\n";
syswrite(P, "typed by the user\\n");
print while sysread(P, $_, 100);
`;

describe("a terminal of the user", () => {
  let victim: Victim;
  let other: ReturnType<Victim["server"]["spawn"]>;
  let path = "";
  let shown = "";
  beforeAll(async () => {
    victim = await Victim.start(hosts.full);
    other = victim.server.spawn(["perl", "-e", terminal]);
    void collect(other.stdout, (text) => {
      shown += text;
    });
    path = await until("the terminal", () => /^(.*)\n/.exec(shown)?.[1]);
    await until("what was typed", () => shown.includes("typed by the user"));
  });
  afterAll(async () => {
    other.kill("SIGKILL");
    await victim.stop();
  });

  test("cannot be read: what the user types stays with their programs", async () => {
    const result = await victim.run(`timeout 1 head -n 1 <${path}`);
    expect(result).not.toContain("typed by the user");
    expect(result).toMatch(/no such file/i);
  });

  test("cannot be written: the user sees nothing that looks as if it were theirs", async () => {
    const result = await victim.run(`echo "sudo: wrong password, try again" >${path}`);
    expect(result).toMatch(/no such file|permission denied/i);
    // Whatever has been written before this is read before it.
    await typed("end of what was shown");
    expect(shown).not.toContain("wrong password");
  });

  test("cannot be typed at", async () => {
    const result = await victim.run(
      perl(
        `open(S, "+<", "${path}") or die $!; my $c = "x"; ioctl(S, 0x5412, $c) or die $!; print "SUCCEEDED"`,
      ),
    );
    expect(result).not.toContain("SUCCEEDED");
    expect(result).toMatch(/no such file/i);
  });

  test("is no loss: terminals can be made in a call", async () => {
    const command = `${perl(terminal.replace("print while", "sysread(P, $_, 100); print; 0 while 0 and"))}`;
    expect(await victim.run(command)).toMatch(/^\/dev\/pts\/\d+\ntyped by the user/);
    expect(await victim.run("script -qec 'tty; echo from a terminal' /dev/null")).toMatch(
      /\/dev\/pts\/\d+\s+from a terminal/,
    );
  });

  async function typed(text: string): Promise<void> {
    writeFileSync(path, `${text}\n`);
    await until(text, () => shown.includes(text));
  }
});

async function collect(stream: ReadableStream<Uint8Array>, take: (text: string) => void): Promise<void> {
  for await (const chunk of stream) take(new TextDecoder().decode(chunk));
}

describe("shared memory", () => {
  const name = `ollie-redteam-${process.pid}`;
  const path = join("/dev/shm", name);
  let victim: Victim;
  beforeAll(async () => {
    victim = await Victim.start(hosts.full);
    await victim.server.run(["sh", "-c", `umask 077; echo secret >${path}`]);
  });
  afterAll(async () => {
    rmSync(path, { force: true });
    await victim.stop();
  });

  test("of other programs cannot be read or written by its name", async () => {
    const result = await victim.run(`cat ${path}; echo x >>${path}; rm -f ${path}`);
    expect(result).not.toContain("secret");
    expect(readFileSync(path, "utf8")).toBe("secret\n");
  });

  test("that a call makes is there for it and gone afterwards", async () => {
    expect(await victim.run("echo mine >/dev/shm/mine; cat /dev/shm/mine; ls /dev/shm")).toBe("mine\nmine\n");
    expect(await victim.run("ls /dev/shm")).toBe("(no output)\n");
    expect(readdirSync("/dev/shm")).not.toContain("mine");
  });

  test("of System V, and its message queues and semaphores, cannot be found", async () => {
    const made = await victim.server.run(["sh", "-c", "ipcmk -M 4096; ipcmk -Q; ipcmk -S 1"]);
    const ids = [...made.stdout.matchAll(/id: (\d+)/g)].map((match) => match[1]!);
    expect(ids).toHaveLength(3);
    const remove = `ipcrm -m ${ids[0]}; ipcrm -q ${ids[1]}; ipcrm -s ${ids[2]}`;
    try {
      const result = await victim.run(`ipcs -a | grep -c 0x; ${remove}`);
      expect(result).toMatch(/^0\n/);
      expect(result).toMatch(/invalid id/);
      const there = await victim.server.run(["ipcs", "-a"]);
      for (const id of ids) expect(there.stdout).toMatch(new RegExp(`0x\\w+ +${id} `));
    } finally {
      await victim.server.run(["sh", "-c", remove]);
    }
  });
});

describe("the kernel", () => {
  let victim: Victim;
  beforeAll(async () => {
    victim = await Victim.start(hosts.full);
  });
  afterAll(() => victim.stop());

  test.each([
    [
      "keyring is read",
      `my $n = "user"; my $d = "x"; syscall(${sys("keyctl")}, 11, -3, 0, 0) >= 0 or die $!`,
    ],
    ["keyring is linked to", `syscall(${sys("keyctl")}, 0, -5, 1) >= 0 or die $!`],
    [
      "keyring gets a key",
      `my ($t, $n, $v) = ("user", "x", "y"); syscall(${sys("add_key")}, $t, $n, $v, 1, -4) >= 0 or die $!`,
    ],
    [
      "mark of the call is changed",
      `my $l = pack("QQ", 1, -1); syscall(${sys("prlimit64")}, 0, 10, $l, 0) == 0 or die $!`,
    ],
    [
      "mark of the call is changed, the old way",
      `my $l = pack("QQ", 1, -1); syscall(${sys("setrlimit")}, 10, $l) == 0 or die $!`,
    ],
    [
      "own limit of processes is lifted",
      `my $l = pack("QQ", 4096, 4096); syscall(${sys("prlimit64")}, 0, 6, $l, 0) == 0 or die $!`,
    ],
    ["no-new-privs is taken back", `syscall(${sys("prctl")}, 38, 0, 0, 0, 0) == 0 or die $!`],
    ["filter of calls is taken off", `syscall(${sys("prctl")}, 22, 0, 0, 0, 0) == 0 or die $!`],
  ])("%s", async (_what, program) => {
    const result = await victim.run(perl(`${program}; print "SUCCEEDED"`));
    expect(result).not.toContain("SUCCEEDED");
    expect(result).toMatch(/not permitted|denied|invalid argument/i);
  });

  test("gives a call no descriptors but its own three", async () => {
    expect(await victim.run("ls /proc/self/fd | tr '\\n' ' '")).toBe("0 1 2 3 \n");
    expect(contentOf(`/proc/${victim.server.pid}/status`)).toContain("olliesrv");
  });
});
