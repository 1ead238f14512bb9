/** Attempts on processes outside of the call: the server, its keeper, other calls, other programs of the user. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { lacksRoot } from "../../needs.ts";
import { contentOf, denied, hosts, perl, sys, Victim } from "./victim.ts";

const key = "sk-proj-nobody-else-reads-this-0123456789";
const secret = "a-secret-of-another-program";

const pidfd = `my $fd = syscall(${sys("pidfd_open")}, $pid, 0); $fd >= 0 or die $!;`;

function syscall(call: Parameters<typeof sys>[0], before: string, args: string): string {
  return perl(
    `my $pid = $ENV{PID} + 0; ${before} syscall(${sys(call)}, ${args}) >= 0 or die $!; print "SUCCEEDED"`,
  );
}

/** `$PID` is who is attacked. */
const reads: [what: string, command: string][] = [
  ["environment", "tr '\\0' '\\n' </proc/$PID/environ"],
  ["auxiliary vector", "od -c /proc/$PID/auxv | head -n 1"],
  ["memory", "dd if=/proc/$PID/mem bs=1 skip=4194304 count=1 status=none"],
  ["working folder", "ls /proc/$PID/cwd/"],
  ["root", "ls /proc/$PID/root/"],
  ["descriptors", "ls /proc/$PID/fd/ && readlink -v /proc/$PID/fd/0"],
  ["mapped files", "ls /proc/$PID/map_files"],
  [
    "memory by process_vm_readv",
    syscall(
      "process_vm_readv",
      'my $b = "x" x 8; my $l = pack("PQ", $b, 8); my $r = pack("QQ", 4194304, 8);',
      "$pid, $l, 1, $r, 1, 0",
    ),
  ],
  [
    "memory by process_vm_writev",
    syscall(
      "process_vm_writev",
      'my $b = "x" x 8; my $l = pack("PQ", $b, 8); my $r = pack("QQ", 4194304, 8);',
      "$pid, $l, 1, $r, 1, 0",
    ),
  ],
  ["registers, by attaching", syscall("ptrace", "", "16, $pid, 0, 0")],
  ["registers, by seizing", syscall("ptrace", "", "0x4206, $pid, 0, 0")],
  ["descriptors, by taking a copy", syscall("pidfd_getfd", pidfd, "$fd, 0, 0")],
  ["namespaces", syscall("setns", pidfd, "$fd, 0x00020000")],
  [
    "namespace by its file",
    syscall("setns", 'open(F, "<", "/proc/$pid/ns/mnt") or die $!; my $fd = fileno(F);', "$fd, 0"),
  ],
];

/** Nobody is changed by them. */
const changes: [what: string, command: string][] = [
  ["end", "kill -9 $PID"],
  ["stop", "kill -STOP $PID"],
  ["end its group", "kill -9 -$PID"],
  ["end by a handle", syscall("pidfd_send_signal", pidfd, "$fd, 9, 0, 0")],
  ["end by a limit of time", syscall("prlimit64", 'my $l = pack("QQ", 0, 0);', "$pid, 0, $l, 0")],
  ["take its descriptors by a limit", syscall("prlimit64", 'my $l = pack("QQ", 0, 0);', "$pid, 7, $l, 0")],
  ["make it first to go when memory is short", "echo 1000 >/proc/$PID/oom_score_adj"],
  ["give it another name", "echo x >/proc/$PID/comm"],
];

const { full, fallback } = hosts;

describe.each(Object.entries({ full, fallback }))("%s host", (_name, host) => {
  let victim: Victim;
  let other: Bun.Subprocess;
  const targets: Record<string, number> = {};
  beforeAll(async () => {
    victim = await Victim.start({ ...host, env: { OLLIE_OPENAI_KEY: key } });
    other = victim.server.spawn(["sleep", "1000"], { SECRET: secret });
    const sibling = await victim.session(`env.SECRET=${secret}`);
    const job = await victim.session();
    const supervised = Number(await victim.occupy("echo $$; exec sleep 1000", job, "job"));
    Object.assign(targets, {
      server: victim.server.pid,
      keeper: victim.processes("ollie-keeper").find((pid) => parentOf(pid) === victim.server.pid)!,
      "program of the user": other.pid,
      "call of another session": Number(await victim.occupy("echo $$; exec sleep 1000", sibling)),
      "job of another session": supervised,
      "supervisor of a job": parentOf(supervised),
    });
  });
  afterAll(async () => {
    other.kill("SIGKILL");
    await victim.stop();
  });

  const all = ["server", "program of the user", "call of another session"];
  if (!("without" in host)) all.push("keeper", "job of another session", "supervisor of a job");
  describe.each(all)("the %s", (target) => {
    test.each(reads)("read its %s", async (_what, command) => {
      const result = await victim.run(`export PID=${targets[target]}\n${command}`);
      expect(result).toMatch(denied);
      expect(result).not.toMatch(new RegExp(`SUCCEEDED|${secret}|${key}`));
    });

    test.each(changes)("%s", async (_what, command) => {
      const before = state(targets[target]!);
      const result = await victim.run(`export PID=${targets[target]}\n${command}`);
      expect(result).toMatch(/permitted|denied|read-only|no such process/i);
      expect(state(targets[target]!)).toEqual(before);
    });
  });

  // Should it work, nothing of that user's is left: not for somebody's own desktop.
  test.skipIf(lacksRoot())("end everybody", async () => {
    const before = Object.values(targets).map(state);
    await victim.run("kill -9 -1; kill -KILL 0");
    expect(Object.values(targets).map(state)).toEqual(before);
  });

  test("have the kernel send signals in its place", async () => {
    const before = Object.values(targets).map(state);
    const owned = perl(
      `pipe(R, W) or die $!; fcntl(R, F_SETOWN, ${targets["program of the user"]}) or die $!; fcntl(R, 10, 9) or die $!; fcntl(R, F_SETFL, O_ASYNC) or die $!; syswrite(W, "x"); print "done"`,
    );
    await victim.run(owned);
    expect(Object.values(targets).map(state)).toEqual(before);
  });
});

function parentOf(pid: number): number {
  return Number(/^PPid:\s+(\d+)/m.exec(contentOf(`/proc/${pid}/status`))![1]);
}

/** What attempts mean to change. */
function state(pid: number): string {
  const files = ["status", "comm", "limits", "oom_score_adj"].map((file) =>
    contentOf(`/proc/${pid}/${file}`),
  );
  const [status, ...rest] = files as [string, ...string[]];
  return [/^State:\s+[^SR]/m.test(status) ? status : "lives", ...rest].join("\n");
}
