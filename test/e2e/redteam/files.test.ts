/** Attempts on files that no tool has anything to do with. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { readdirSync, symlinkSync } from "node:fs";
import { join } from "node:path";
import { denied, hosts, perl, sys, unseen, Victim } from "./victim.ts";

/** `$OUT` is the folder outside, `link` in the working folder leads there, `$SERVER` is the server, `$OTHER` another process of the user. */
const attempts: [what: string, command: string][] = [
  ["write", "echo x > $OUT/file"],
  ["write in place", "echo x | dd of=$OUT/file conv=notrunc status=none"],
  ["append", "echo x >> $OUT/file"],
  ["cut", perl('truncate("$ENV{OUT}/file", 0) or die $!')],
  ["read", "cat $OUT/file"],
  ["create a file", "touch $OUT/new"],
  ["create a nameless file", perl("sysopen(F, $ENV{OUT}, 020200000 | O_RDWR, 0600) or die $!")],
  ["make a folder", "mkdir $OUT/new"],
  ["make a FIFO", "mkfifo $OUT/new"],
  ["make a symbolic link", "ln -s / $OUT/new"],
  [
    "make a socket",
    perl('socket(S, AF_UNIX, SOCK_STREAM, 0) or die $!; bind(S, sockaddr_un("$ENV{OUT}/new")) or die $!'),
  ],
  ["remove a file", "rm $OUT/file"],
  ["remove a folder", "rm -r $OUT/folder"],
  ["rename there", "mv $OUT/file $OUT/new"],
  ["rename in", "mv $OUT/file here"],
  ["rename out", "echo x > mine; mv mine $OUT/new"],
  ["rename over", "echo x > mine; mv -f mine $OUT/file"],
  [
    "exchange",
    `echo x > mine; ${perl(`my ($a, $b) = ("mine", "$ENV{OUT}/file"); syscall(${sys("renameat2")}, -100, $a, -100, $b, 2) == 0 or die $!`)}`,
  ],
  [
    "exchange a folder",
    `mkdir -p mined; ${perl(`my ($a, $b) = ("mined", "$ENV{OUT}/folder"); syscall(${sys("renameat2")}, -100, $a, -100, $b, 2) == 0 or die $!`)}`,
  ],
  ["hard link in", "ln $OUT/file here && echo x > here"],
  ["hard link out", "echo x > mine; ln mine $OUT/new"],
  ["run a program", "$OUT/program"],
  ["run a program by its interpreter", "sh $OUT/program"],
  ["run a program by a link", "ln -sf $OUT/program p; ./p"],
  ["write through a link to a folder", "echo x > link/file"],
  ["create through a link to a folder", "touch link/new"],
  ["write through a link to a file", "ln -sf $OUT/file f; echo x > f"],
  ["create through a dangling link", "ln -sf $OUT/new f; echo x > f"],
  ["write through ..", "echo x > ../private/file"],
  ["write through /proc/self/root", "echo x > /proc/self/root$OUT/file"],
  ["write through /proc/self/cwd", "echo x > /proc/self/cwd/../private/file"],
  ["write through a descriptor's path", "exec 5<..; echo x > /proc/self/fd/5/private/file"],
  ["write through the server's root", "echo x > /proc/$SERVER/root$OUT/file"],
  ["write through the server's folder", "echo x > /proc/$SERVER/cwd/../private/file"],
  ["write through another process's root", "echo x > /proc/$OTHER/root$OUT/file"],
  ["write through another process's folder", "echo x > /proc/$OTHER/cwd/file"],
  ["read what another process has open", "cat /proc/$OTHER/fd/0"],
  ["list what another process has open", "ls -l /proc/$OTHER/fd"],
  ["read through a mount of one's own", `unshare -Urm sh -c "${perlTree()}"`],
];

/** A copy of the mount, made with the rights of a namespace of one's own, and opened from there. */
function perlTree(): string {
  return `perl -e 'my \\$t = syscall(${sys("open_tree")}, -100, \\"\\$ENV{OUT}\\", 1); \\$t >= 0 or die \\$!; my \\$f = syscall(${sys("openat")}, \\$t, \\"file\\", 0, 0); \\$f >= 0 or die \\$!; open(F, \\"<&=\\", \\$f); print <F>'`;
}

/** Nothing of Landlock: it takes a mount namespace to forbid them. */
const ofInodes: [what: string, command: string][] = [
  ["mode", "chmod 777 $OUT/file"],
  ["mode of a folder", "chmod 777 $OUT"],
  ["owner", "chown $(id -u):$(id -g) $OUT/file"],
  ["times", "touch -d 2001-01-01 $OUT/file"],
  [
    "attributes",
    perl(
      `my ($p, $n, $v) = ("$ENV{OUT}/file", "user.x", "y"); syscall(${sys("setxattr")}, $p, $n, $v, 1, 0) == 0 or die $!`,
    ),
  ],
  ["mode through a link", "chmod 777 link/file"],
  [
    "mode through a descriptor",
    `${perl('open(F, "<", "$ENV{OUT}/..") || open(F, "<", "..") or die $!; chmod(0777, "/proc/self/fd/" . fileno(F) . "/private/file") or die $!')}`,
  ],
];

describe.each(Object.entries(hosts))("%s host", (_name, host) => {
  /** A home in /tmp is not seen at all. */
  const stopped = host.place === "tmp" ? unseen : denied;
  let victim: Victim;
  let other: Bun.Subprocess;
  let head: string;
  beforeAll(async () => {
    victim = await Victim.start(host);
    symlinkSync(victim.outside, join(victim.work, "link"));
    other = victim.server.spawn(["sh", "-c", `cd ${victim.outside}; exec sleep 1000 <file`]);
    head = `export OUT=${victim.outside} SERVER=${victim.server.pid} OTHER=${other.pid}\n`;
  });
  afterAll(async () => {
    other.kill();
    await victim.stop();
  });

  test.each(attempts)("%s", async (_what, command) => {
    const before = victim.belongings();
    const result = await victim.run(head + command);
    expect(result).toMatch(stopped);
    expect(result).toMatch(/^\[exit \d+(, sandbox: partial)?\]$/m);
    expect(result).not.toMatch(/untouched|RAN/);
    expect(victim.belongings()).toEqual(before);
    expect(readdirSync(victim.work)).not.toContain("here");
  });

  test.each(ofInodes)("change the %s", async (_what, command) => {
    const before = victim.belongings();
    const result = await victim.run(head + command);
    if ("without" in host) {
      expect(result).toContain("sandbox: partial");
      expect(await victim.read("version")).toContain(
        "tools can: change modes, owners and times of files outside",
      );
      return;
    }
    expect(result).toMatch(stopped);
    expect(victim.belongings()).toEqual(before);
  });
});
