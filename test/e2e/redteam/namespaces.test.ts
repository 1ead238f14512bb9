/** Attempts with namespaces of one's own, in which every program has all capabilities: to mount, to move and to take off mounts. */

import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { lacksPrograms } from "../../needs.ts";
import { denied, hosts, perl, sys, Victim } from "./victim.ts";

const users = 0x10000000;
const mounts = 0x00020000;

/** In perl: `c(NAME, CALL, ARGUMENTS)` makes a call and says whether it worked; strings are variables, since the kernel could write to them. */
const prelude = `
sub c { my ($name, @a) = @_; my $r = syscall(shift @a, @a); print $r < 0 ? "$name: $!\\n" : "$name: SUCCEEDED\\n"; return $r }
my ($out, $home, $work) = @ENV{"OUT", "HOME", "OLLIE_CWD"};
my ($none, $root, $run, $tmp, $tmpfs, $proc, $dot, $empty, $file, $new, $mnt, $up, $here) = ("none", "/", "/run", "/tmp", "tmpfs", "proc", ".", "", "file", "new", "/mnt", "..", "./m");
my $clear = pack("QQQQ", 0, 1, 0, 0);
mkdir $here;
`;
const inside = `${prelude} syscall(${sys("unshare")}, ${users | mounts}) == 0 or print "unshare: $!\\n";`;
const c = (call: Parameters<typeof sys>[0], ...args: (string | number)[]) =>
  `c("${call}", ${[sys(call), ...args].join(", ")})`;
const AT = -100;

/** Nothing of it may succeed. */
const attempts: [what: string, program: string][] = [
  ["mount a file system", c("mount", "$tmpfs", "$mnt", "$tmpfs", 0, "$empty")],
  ["mount one in the working folder", c("mount", "$tmpfs", "$here", "$tmpfs", 0, "$empty")],
  ["mount a folder elsewhere", c("mount", "$out", "$here", "$empty", 4096, "$empty")],
  ["mount the root elsewhere", c("mount", "$root", "$here", "$empty", 4096 | 16384, "$empty")],
  ["mount another proc", c("mount", "$proc", "$here", "$proc", 0, "$empty")],
  ["make everything writable", c("mount", "$none", "$root", "$empty", 32 | 4096, "$empty")],
  ["make everything writable, below as well", c("mount_setattr", AT, "$root", 0x8000, "$clear", 32)],
  ["make the home folder writable", c("mount_setattr", AT, "$home", 0, "$clear", 32)],
  ["take the cover off /run", c("umount2", "$run", 2)],
  ["take the cover off the home folder", c("umount2", "$home", 2)],
  ["take off its own /tmp", c("umount2", "$tmp", 2)],
  ["take off everything", c("umount2", "$root", 2)],
  ["change the root", `${c("pivot_root", "$dot", "$dot")}; ${c("pivot_root", "$here", "$here")}`],
  [
    "make a file system",
    `my $f = syscall(${sys("fsopen")}, $tmpfs, 0); syscall(${sys("fsconfig")}, $f, 6, 0, 0, 0); my $m = syscall(${sys("fsmount")}, $f, 0, 0); ${c("move_mount", "$m", "$empty", AT, "$mnt", 4)}; ${c("openat", "$m", "$new", 0o101, 0o600)}`,
  ],
  [
    "write in a copy of a mount",
    `my $t = syscall(${sys("open_tree")}, ${AT}, $out, 1); ${c("openat", "$t", "$file", 1, 0)}; ${c("openat", "$t", "$file", 0, 0)}; ${c("openat", "$t", "$new", 0o101, 0o600)}`,
  ],
  [
    "write in a copy of the root",
    `my $t = syscall(${sys("open_tree")}, ${AT}, $root, 1 | 0x8000); my $path = substr($out, 1) . "/file"; ${c("openat", "$t", "$path", 1, 0)}; ${c("openat", "$t", "$path", 0, 0)}; ${c("mount_setattr", "$t", "$empty", 0x1000 | 0x8000, "$clear", 32)}`,
  ],
  [
    "put a copy of a mount in place",
    `my $t = syscall(${sys("open_tree")}, ${AT}, $out, 1); ${c("move_mount", "$t", "$empty", AT, "$here", 4)}`,
  ],
  [
    "leave a root of its own by a descriptor",
    `opendir(D, "/"); my $d = fileno(D); chroot $here; chdir "/" if 0; ${c("openat", "$d", '(my $p = substr($out, 1) . "/file")', 1, 0)}; chroot "."; ${c("openat", AT, '(my $q = "../../../../../../..$out/file")', 1, 0)}`,
  ],
  [
    "open by a handle",
    `my $h = pack("IIx128", 128, 0); my $id = pack("I", 0); syscall(${sys("name_to_handle_at")}, ${AT}, $out, $h, $id, 0); opendir(D, "."); ${c("open_by_handle_at", "fileno(D)", "$h", 0)}`,
  ],
  [
    "join the server",
    `my $pid = $ENV{SERVER}; open(F, "<", "/proc/$pid/ns/mnt") or print "open: $!\\n"; ${c("setns", "fileno(F) // -1", 0)}`,
  ],
  [
    "join by a process of its own from before",
    `my $p = syscall(${sys("pidfd_open")}, getppid(), 0); ${c("setns", "$p", mounts)}`,
  ],
];

const { full, fallback } = hosts;

describe.each(Object.entries({ full, fallback }))("%s host", (_name, host) => {
  let victim: Victim;
  beforeAll(async () => {
    victim = await Victim.start(host);
  });
  afterAll(() => victim.stop());
  const tried = (program: string) =>
    victim.run(`export OUT=${victim.outside} SERVER=${victim.server.pid}\n${perl(program)}`);

  test("namespaces of one's own can be made: the attempts are what they say", async () => {
    expect(
      await tried(`${prelude} c("unshare", ${sys("unshare")}, ${users | mounts}); print "uid $<\\n"`),
    ).toContain("unshare: SUCCEEDED");
  });

  test.each(attempts)("%s", async (_what, program) => {
    const before = victim.belongings();
    for (const script of [`${inside} ${program}`, `${prelude} ${program}`]) {
      const result = await tried(script);
      expect(result).not.toContain("SUCCEEDED");
      expect(result).not.toMatch(/ at -e line|syntax error/);
      expect(result).toMatch(/^\w+: \w/m);
      expect(result).not.toContain("untouched");
    }
    expect(victim.belongings()).toEqual(before);
  });

  test.each([
    [
      "unshare",
      "unshare -Urm sh -c 'mount -t tmpfs none /mnt && echo IN; umount -l /run && echo IN; cat $OUT/file; echo x >$OUT/file'",
    ],
    [
      "unshare, with processes and network",
      "unshare -Urmpfn --mount-proc sh -c 'echo IN; cat $OUT/file; echo x >$OUT/file'",
    ],
    ["nsenter", "nsenter -t $SERVER -m -U sh -c 'echo IN; cat $OUT/file; echo x >$OUT/file'"],
    ["chroot", "/usr/sbin/chroot / sh -c 'cat $OUT/file; echo x >$OUT/file'"],
    ["sudo", "sudo -n cat $OUT/file; su -c id; pkexec id"],
  ])("%s", async (_what, command) => {
    const before = victim.belongings();
    const result = await victim.run(`export OUT=${victim.outside} SERVER=${victim.server.pid}\n${command}`);
    expect(result).not.toMatch(/^IN$|untouched|uid=0/m);
    expect(result).toMatch(new RegExp(`${denied.source}|no new privileges`, "i"));
    expect(victim.belongings()).toEqual(before);
  });

  test.skipIf(lacksPrograms("bwrap"))("bwrap", async () => {
    const before = victim.belongings();
    const result = await victim.run(
      `bwrap --dev-bind / / --bind ${victim.outside} /mnt sh -c 'echo IN; echo x >/mnt/file'`,
    );
    expect(result).not.toMatch(/^IN$/m);
    expect(result).toMatch(denied);
    expect(victim.belongings()).toEqual(before);
  });
});
