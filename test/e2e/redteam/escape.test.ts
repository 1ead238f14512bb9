/** Attempts to outlive a call, a job, a session or the server. What is left is looked for from outside, by a word that nothing else has. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { until } from "../harness.ts";
import { contentOf, hosts, perl, sys, Victim } from "./victim.ts";

/** Each leaves `sleep WORD` running, or something of that name. */
const escapes: [what: string, command: string][] = [
  ["in the background", "sleep WORD &"],
  ["with nohup", "nohup sleep WORD >/dev/null 2>&1 &"],
  ["disowned", "sleep WORD & disown -a"],
  ["in a session of its own", "setsid sleep WORD &"],
  ["twice removed", "(setsid sh -c 'sleep WORD & exit' &)"],
  ["without an environment", "env -i setsid sleep WORD &"],
  ["without an environment, twice removed", "(env -i setsid sh -c 'env -i sleep WORD & exit 0' &)"],
  ["under another name", "(exec -a '[kworker/0:1]' setsid sleep WORD) &"],
  [
    "with a title written over everything",
    `${perl('$0 = "systemd"; POSIX::setsid(); exit if fork; $0 = "x" x 5000; $ENV{MARK} = ""; sleep 1000')} &`,
  ],
  [
    "deaf to signals",
    "(trap '' TERM HUP INT QUIT; setsid sh -c \"trap '' TERM HUP; while :; do sleep WORD; done\") &",
  ],
  ["stopped", "sleep WORD & kill -STOP $!"],
  [
    "not to be looked at",
    `${perl(`syscall(${sys("prctl")}, 4, 0, 0, 0, 0); POSIX::setsid(); exec("sleep", "WORD")`)} &`,
  ],
  ["in a user namespace of its own", "unshare -U setsid sleep WORD &"],
  ["in a process namespace of its own", "unshare -Upf setsid sleep WORD &"],
  [
    "as a daemon",
    perl(
      'exit if fork; POSIX::setsid(); exit if fork; chdir "/"; open(STDIN, "<", "/dev/null"); open(STDOUT, ">", "/dev/null"); open(STDERR, ">", "/dev/null"); %ENV = (); exec("sleep", "WORD")',
    ),
  ],
  [
    "forking on and on",
    "(f() { sleep 0.01; (f &) ; exit; }; env -i setsid bash -c 'f() { sleep 0.01 WORD 2>/dev/null; (f &); exit; }; f') &",
  ],
  ["in a tmux server", "tmux -f /dev/null -S $TMPDIR/t new-session -d 'sleep WORD'"],
  ["by script", "script -qfc 'sleep WORD' /dev/null >/dev/null &"],
  [
    "by a subreaper",
    `${perl(`syscall(${sys("prctl")}, 36, 1, 0, 0, 0); unless (fork) { POSIX::setsid(); unless (fork) { exec("sleep", "WORD") } exit } sleep 1000`)} &`,
  ],
  [
    "with its mark changed",
    `${perl(`my $l = pack("QQ", 1, -1); syscall(${sys("prlimit64")}, 0, 10, $l, 0); POSIX::setsid(); %ENV = (); exec("sleep", "WORD")`)} &`,
  ],
  [
    "by vfork and a long chain",
    'for i in 1 2 3 4 5 6 7 8; do set -- setsid sh -c "$(printf \'%s \' "$@") sleep WORD &"; done; setsid sh -c \'(setsid sh -c "(setsid sleep WORD &)" &)\'',
  ],
];

const { full, fallback } = hosts;

describe.each(Object.entries({ full, fallback }))("%s host", (_name, host) => {
  let victim: Victim;
  beforeAll(async () => {
    victim = await Victim.start(host);
  });
  afterAll(() => victim.stop());

  let count = 0;
  /** Seconds to sleep, and nobody else's. */
  const word = () => `${7_000_000 + (process.pid % 10_000) * 100 + count++}`;

  /** Also what has given itself another name, by its mark: of this server, and in no call. */
  const left = (mark: string) => [...victim.processes(mark), ...victim.ofCalls()];

  const some = (every: number) => escapes.filter((_, i) => i % every === 0);

  describe("a process", () => {
    // How they are found does not depend on namespaces: here and there is enough.
    const tried = "without" in host ? some(5) : escapes;
    const results = new Map<string, { said: string; left: number[] }>();
    beforeAll(async () => {
      await Promise.all(
        tried.map(async ([how, command]) => {
          const mark = word();
          const session = await victim.session();
          const said = await victim.run(`${command.replaceAll("WORD", mark)}\nsleep 0.05; true`, session);
          results.set(how, { said, left: victim.processes(mark) });
        }),
      );
    });

    test.each(tried)("%s ends with its call", (how) => {
      const { said, left } = results.get(how)!;
      expect(left).toEqual([]);
      // Otherwise nothing was left that could have ended.
      expect(said).toContain("background process");
    });

    test("of no kind is left of any call", () => expect(victim.ofCalls()).toEqual([]));
  });

  test.each(some(5))("a process %s ends with the job that is ended", async (_how, command) => {
    const mark = word();
    const session = await victim.session();
    await victim.occupy(`${command.replaceAll("WORD", mark)}\necho runs; exec sleep ${mark}`, session, "job");
    const [job] = await victim.client.readDir(`session/${session}/job`);
    await victim.write(`session/${session}/job/${job!.name}/ctl`, "kill\n");
    await victim.ended(session);
    expect(left(mark)).toEqual([]);
  });

  test.each([
    ["run", "a call"],
    ["job", "a job"],
  ] as const)("what %s has started ends with its session", async (how) => {
    const mark = word();
    const session = await victim.session();
    await victim.occupy(
      `env -i setsid sleep ${mark} & (setsid sh -c 'trap "" TERM; sleep ${mark}; sleep ${mark}' &)\necho runs; exec sleep ${mark}`,
      session,
      how,
    );
    await victim.client.remove(`session/${session}`);
    await until("all of it is gone", () => left(mark).length === 0);
  });

  test("a call that is stopped leaves nothing", async () => {
    const mark = word();
    const session = await victim.session();
    await victim.occupy(
      `trap '' TERM; env -i setsid sh -c "trap '' TERM; sleep ${mark}" & echo runs; while :; do sleep ${mark}; done`,
      session,
    );
    await victim
      .write(`session/${session}/ctl`, "stop\n")
      .catch(() => victim.write(`session/${session}/agent/default/ctl`, "stop\n"));
    await victim.read(`s/${session}/idlewait`);
    expect(left(mark)).toEqual([]);
  });

  test("a job is in the same cage, and cannot approve", async () => {
    const session = await victim.session();
    const out = join(victim.work, `job-${session}`);
    await victim.ask(
      `job (cat ${victim.outside}/file; echo x >${victim.outside}/new; ollie-9p ls elevate; echo 'allow x' | ollie-9p write elevate/ctl; o approve --list; kill -9 ${victim.server.pid}) >${out} 2>&1; echo done >>${out}`,
      session,
    );
    await until("the job", () => contentOf(out).endsWith("done\n"));
    expect(contentOf(out)).not.toContain("untouched");
    expect(contentOf(out)).toMatch(/denied|no such file/i);
    expect(existsSync(join(victim.outside, "new"))).toBe(false);
    expect(await victim.read("version")).toContain("ollie");
  });
});

describe.each(Object.entries({ full, fallback }))("%s host: a server that is killed", (_name, host) => {
  test.each(escapes.filter((_, i) => [6, 9, 15].includes(i)))(
    "leaves no process %s",
    async (_how, command) => {
      const victim = await Victim.start(host);
      try {
        const mark = `${8_000_000 + (process.pid % 10_000)}`;
        await victim.occupy(
          `${command.replaceAll("WORD", mark)}\nsleep 0.05; echo runs; exec sleep ${mark}`,
          await victim.session(),
        );
        expect(victim.processes(mark)).not.toEqual([]);
        process.kill(victim.server.pid, "SIGKILL");
        await until(
          "all of it is gone",
          () => victim.processes(mark).length === 0 && victim.ofCalls().length === 0,
        );
      } finally {
        await victim.stop();
      }
    },
  );
});
