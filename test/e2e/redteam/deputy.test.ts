/** Attempts to have the server, which nothing confines, do what a tool may not: read through a link, write through one, wait for ever, tell. */
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "bun:test";
import { existsSync, mkdirSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { contentOf, hosts, Victim } from "./victim.ts";

const secret = "sk-proj-nobody-else-reads-this-0123456789";
const { full, fallback } = hosts;

describe.each(Object.entries({ full, fallback }))("%s host", (_name, host) => {
  let victim: Victim;
  let folder: string;
  let session: string;
  beforeAll(async () => {
    victim = await Victim.start(host);
    await victim.server.run([
      "sh",
      "-c",
      `echo "${secret}" >${victim.outside}/secret; echo "${secret}" >${victim.home}/.ssh/secret`,
    ]);
  });
  afterAll(() => victim.stop());
  beforeEach(async () => {
    folder = join(victim.work, crypto.randomUUID().slice(0, 8));
    mkdirSync(folder);
    victim.server.give(folder);
    session = await victim.session(`cwd=${folder}`);
  });

  /** Everything that the next request to a model would hold, and that a tool can read of it. */
  async function known(): Promise<string> {
    const said = await victim.run(
      `for f in context reply usage; do ollie-9p read session/$OLLIE_SESSION/agent/$OLLIE_AGENT/$f; done`,
      session,
    );
    return said + (await victim.read(`session/${session}/agent/default/context`));
  }

  describe("what a project says of itself", () => {
    test.each([
      ["AGENTS.md", "secret outside", () => `ln -s ${victim.outside}/secret AGENTS.md`],
      ["CLAUDE.md", "secret at home", () => `ln -s ${victim.home}/.ssh/secret CLAUDE.md`],
      ["AGENTS.md", "link to a link", () => `ln -s ${victim.outside} d; ln -s d/secret AGENTS.md`],
      [
        "AGENTS.md",
        "link of another name on the way",
        () => `ln -s ${victim.outside}/secret CLAUDE.md; ln -s CLAUDE.md AGENTS.md`,
      ],
      [
        "AGENTS.md",
        "path through the server",
        () => `ln -s /proc/${victim.server.pid}/environ AGENTS.md; ln -s /proc/self/environ CLAUDE.md`,
      ],
      [".git/HEAD", "secret outside", () => `mkdir -p .git; ln -s ${victim.outside}/secret .git/HEAD`],
      [
        ".git",
        "folder whose HEAD is the secret",
        () => `mkdir g; ln -s ${victim.outside}/secret g/HEAD; echo "gitdir: $PWD/g" >.git`,
      ],
      [".ollie-sandbox.yaml", "secret outside", () => `ln -s ${victim.outside}/secret .ollie-sandbox.yaml`],
    ])("shows nobody a secret by %s as a %s", async (_file, _what, command) => {
      await victim.run(command(), session);
      expect(await known()).not.toMatch(/sk-proj|OLLIE_SCRIPT_SCENARIO=/);
    });

    test.each([
      ["a pipe", "mkfifo AGENTS.md CLAUDE.md; mkdir -p .git; mkfifo .git/HEAD"],
      ["an endless file", "ln -s /dev/zero AGENTS.md; mkdir -p .git; ln -s /dev/zero .git/HEAD"],
      ["a terabyte", "truncate -s 1T AGENTS.md; mkdir -p .git; truncate -s 1T .git/HEAD"],
      [
        "a socket",
        "perl -MSocket -e 'socket(S, AF_UNIX, SOCK_STREAM, 0); bind(S, sockaddr_un(\"AGENTS.md\"))'",
      ],
      ["a folder", "mkdir -p AGENTS.md .git/HEAD"],
      ["a circle of links", "ln -s CLAUDE.md AGENTS.md; ln -s AGENTS.md CLAUDE.md; ln -s . .git"],
    ])("does not hold up the server as %s", async (_what, command) => {
      await victim.run(command, session);
      expect(await victim.run("echo goes on", session)).toContain("goes on");
    });

    test("is told all the same, also by a link to the other name", async () => {
      await victim.run("echo 'Use tabs here.' >AGENTS.md; ln -s AGENTS.md CLAUDE.md", session);
      expect(await victim.read(`session/${session}/agent/default/context`)).toContain("Use tabs here.");
    });
  });

  describe("the session's own folder", () => {
    test("is not put in another place, nor what ollie keeps in it", async () => {
      const before = victim.belongings();
      for (const name of ["", "/tmp/.reads", "/output", "/tmp", "/slash-tmp", "/undone"])
        await victim.run(
          `d=$(dirname $TMPDIR)${name}; mv $d moved; rm -rf $d; rmdir $d; ln -sfn ${victim.outside} $d; ln -sfn ${victim.outside} $d/link`,
          session,
        );
      // Long enough to be kept in a file.
      await victim.run(
        "seq 100000; mkdir .git; mkdir -p .git/hooks; echo x >.git/hooks/post-commit",
        session,
      );
      await victim.ask(`call file_read ${JSON.stringify({ path: "missing" })}`, session);
      await victim.ask("job echo done", session);
      await victim.ended(session);
      expect(victim.belongings()).toEqual(before);
    });

    test("goes with the session, whatever has been made of it", async () => {
      const own = (
        await victim.run(
          "mkdir -p $TMPDIR/a/b/c; echo x >$TMPDIR/a/b/c/d; ln -s / $TMPDIR/root; chmod 0 $TMPDIR/a/b $TMPDIR/a; mkfifo $TMPDIR/p; dirname $TMPDIR",
          session,
        )
      )
        .trim()
        .split("\n")[0]!;
      expect(existsSync(own)).toBe(true);
      await victim.client.remove(`session/${session}`);
      expect(existsSync(own)).toBe(false);
      expect(existsSync("/usr/bin")).toBe(true);
    });
  });

  test("what explains a denial does not look where the tool may not", async () => {
    const other = victim.server.spawn(["sh", "-c", `cd ${victim.outside}/folder; exec sleep 1000 <inner`]);
    try {
      const result = await victim.run(
        [
          ...["cwd", "root", "fd/0", "exe", "cwd/inner"].map(
            (name) => `echo "cat: /proc/${other.pid}/${name}: Permission denied" >&2`,
          ),
          `echo "cat: /proc/${victim.server.pid}/fd/3: Permission denied" >&2; false`,
        ].join("\n"),
        session,
      );
      expect(result).not.toContain("private");
      expect(result).not.toContain(victim.socket);
    } finally {
      other.kill();
    }
  });

  test("a file that the server puts back is not put elsewhere by a link", async () => {
    await victim.server.run([
      "sh",
      "-c",
      `cd ${folder} && git init -q . && echo '#!/bin/sh' >.git/hooks/post-commit`,
    ]);
    const own = await victim.session(`cwd=${folder}`);
    const before = victim.belongings();
    // Swaps the folder for a link, again and again, while the call ends and after.
    await victim.run(
      `echo evil >.git/hooks/post-commit; (setsid sh -c 'while :; do mv .git g; ln -s ${victim.outside} .git; rm .git; mv g .git; done' >/dev/null 2>&1 &) ; sleep 0.2; mv .git/hooks h; ln -s ${victim.outside} .git/hooks`,
      own,
    );
    expect(victim.belongings()).toEqual(before);
    expect(readdirSync(victim.outside)).not.toContain("post-commit");
  });

  test("a folder that has become a link gives no right where that leads", async () => {
    const inner = join(folder, "inner");
    mkdirSync(inner);
    victim.server.give(inner);
    const own = await victim.session(`cwd=${inner}`);
    const before = victim.belongings();
    await victim.run(`rmdir inner; ln -s ${victim.outside} inner`, session);
    const result = await victim.run("cat file; echo x >file", own);
    expect(result).toContain(`the working folder ${inner} leads out of ${inner} by now`);
    expect(victim.belongings()).toEqual(before);
  });

  test("a folder that is swapped for a link while calls begin gives no right elsewhere", async () => {
    const inner = join(folder, "inner");
    mkdirSync(inner);
    victim.server.give(inner);
    const own = await victim.session(`cwd=${inner}`);
    const swapper = await victim.session(`cwd=${folder}`);
    const before = victim.belongings();
    await victim.occupy(
      `echo runs; while :; do mv inner real; ln -s ${victim.outside} inner; rm inner; mv real inner; done`,
      swapper,
      "job",
      folder,
    );
    // Without namespaces modes can be changed anywhere (SECURITY.md).
    const mode = "without" in host ? "" : `chmod 777 ${victim.outside}/file; chmod 777 file;`;
    for (let i = 0; i < 20; i++)
      await victim.run(
        `${mode} touch ${victim.outside}/new; echo x >${victim.outside}/file; echo x >new; cat file`,
        own,
      );
    await victim.client.remove(`session/${swapper}`);
    expect(victim.belongings()).toEqual(before);
    expect(contentOf(join(victim.outside, "file"))).toBe("untouched\n");
  });
});
