/** Attempts to have the user's own git, which runs outside of any sandbox, run something. */
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "bun:test";
import { existsSync, mkdirSync } from "node:fs";
import { join } from "node:path";
import { until } from "../harness.ts";
import { contentOf, hosts, perl, sys, Victim } from "./victim.ts";

/** The user's git does the usual things in a folder; says whether that has run anything of the attackers'. */
const usual =
  "cd $1 && git status; git add -A; git commit -qm x --allow-empty; git checkout -q -b b$$; git diff HEAD~1";

/** `TRACE` stands for the file that shows that something has run, `TOP` for the top of the repository. */
const hook = (path: string) => `printf '#!/bin/sh\\ntouch TRACE\\n' >${path} && chmod +x ${path}`;
const settings = (path: string) =>
  `printf '[core]\\n\\tfsmonitor = touch TRACE\\n\\thooksPath = TOP/hooks\\n[diff]\\n\\texternal = touch TRACE\\n' >>${path}`;

/** In a repository `repo`, where the call works, with a linked work tree `../tree` and a submodule `sub`. */
const attempts: [what: string, command: string][] = [
  ["a hook", hook(".git/hooks/pre-commit")],
  ["a hook that is there", "echo touch TRACE >>.git/hooks/post-checkout"],
  ["a hook by a link", `${hook("h")}; ln -s $PWD/h .git/hooks/post-commit`],
  [
    "another folder of hooks",
    `mkdir hooks; ${hook("hooks/pre-commit")}; mv .git/hooks .git/old && cp -r hooks .git/hooks`,
  ],
  [
    "no folder of hooks, then another",
    `rm -rf .git/hooks && mkdir .git/hooks && ${hook(".git/hooks/post-commit")}`,
  ],
  [
    "a link for the folder of hooks",
    `mkdir hooks; ${hook("hooks/post-commit")}; rm -rf .git/hooks && ln -s $PWD/hooks .git/hooks`,
  ],
  ["settings", settings(".git/config")],
  ["settings, by git itself", "git config core.fsmonitor 'touch TRACE'"],
  [
    "a folder of hooks named by git itself",
    `mkdir hooks; ${hook("hooks/post-commit")}; git config core.hooksPath TOP/hooks`,
  ],
  ["settings, renamed into place", `${settings("c")}; mv -f c .git/config`],
  [
    "settings, by a lock of one's own",
    `cp .git/config .git/config.lock; ${settings(".git/config.lock")}; mv -f .git/config.lock .git/config`,
  ],
  [
    "settings of the work tree",
    `printf '[extensions]\\n\\tworktreeConfig = true\\n' >>.git/config; ${settings(".git/config.worktree")}`,
  ],
  [
    "another git folder",
    `cp -r .git evil.git; ${settings("evil.git/config")}; mv .git old.git && mv evil.git .git`,
  ],
  [
    "a file for the git folder",
    `cp -r .git other.git; ${settings("other.git/config")}; echo "gitdir: $PWD/other.git" >g; mv .git old.git && mv g .git`,
  ],
  [
    "a link for the git folder",
    `cp -r .git other.git; ${settings("other.git/config")}; mv .git old.git && ln -s other.git .git`,
  ],
  [
    "exchange of the git folder",
    `cp -r .git other.git; ${settings("other.git/config")}; ${perl(`my ($a, $b) = (".git", "other.git"); syscall(${sys("renameat2")}, -100, $a, -100, $b, 2) == 0 or die $!`)}`,
  ],
  [
    "a common folder elsewhere",
    `mkdir c; cp -r .git/. c; ${settings("c/config")}; echo $PWD/c >.git/commondir`,
  ],
  [
    "the linked work tree's settings",
    `printf '[extensions]\\n\\tworktreeConfig = true\\n' >>.git/config; ${settings(".git/worktrees/tree/config.worktree")}`,
  ],
  [
    "the linked work tree's common folder",
    `mkdir c; cp -r .git/. c; ${settings("c/config")}; echo $PWD/c >.git/worktrees/tree/commondir`,
  ],
  ["a submodule's hooks", hook(".git/modules/sub/hooks/post-commit")],
  ["a submodule's settings", settings(".git/modules/sub/config")],
  [
    "a submodule's pointer",
    `cp -r .git/modules/sub evil.git; ${settings("evil.git/config")}; git config -f evil.git/config core.worktree $PWD/sub; echo "gitdir: $PWD/evil.git" >sub/.git`,
  ],
  [
    "a submodule's pointer, by a folder",
    `cp -r .git/modules/sub evil.git; ${settings("evil.git/config")}; git config -f evil.git/config core.worktree $PWD/sub; rm sub/.git && mv evil.git sub/.git`,
  ],
];

const { full, fallback } = hosts;

describe.each(Object.entries({ full, fallback }))("%s host", (_name, host) => {
  const started = Victim.start(host);
  let victim: Victim;
  let repo: string;
  let session: string;
  let trace: string;

  beforeAll(async () => {
    victim = await started;
    trace = join(victim.outside, "trace");
    repo = join(victim.work, "top/repo");
    const made = await victim.server.run([
      "sh",
      "-ec",
      `git config --global user.email a@b.c; git config --global user.name N; git config --global protocol.file.allow always
       mkdir top; cd top; git init -q other; (cd other; git commit -qm o --allow-empty)
       git init -q repo; cd repo; echo x >f; git submodule -q add ../other sub; git add -A; git commit -qm first
       git worktree add -q ../tree; printf '#!/bin/sh\\n' >.git/hooks/post-checkout; chmod +x .git/hooks/post-checkout
       cp -a ../../top ../../fresh`,
    ]);
    expect(made).toMatchObject({ status: 0 });
  });
  beforeEach(async () => {
    await victim.server.run(["sh", "-ec", `rm -rf top; cp -a fresh top; rm -f ${trace}`]);
    session = await victim.session(`cwd=${repo}`);
  });
  afterAll(async () => (await started).stop());

  async function usersGit(folder: string): Promise<void> {
    await victim.server.run(["sh", "-c", usual, "sh", folder]);
  }

  const folders = () =>
    [repo, join(repo, "../tree"), join(repo, "sub")].filter((folder) => existsSync(folder));
  const meant = (command: string) => command.replaceAll("TRACE", trace).replaceAll("TOP", repo);
  const attack = (command: string) => victim.run(meant(command), session);

  test.each(attempts)("%s", async (what, command) => {
    const config = contentOf(join(repo, ".git/config"));
    const result = await attack(command);
    for (const folder of folders()) await usersGit(folder);
    expect(existsSync(trace)).toBe(false);
    if (existsSync(join(repo, ".git/config"))) expect(contentOf(join(repo, ".git/config"))).toBe(config);
    if (!what.startsWith("alternates"))
      expect(result).toMatch(
        /denied|read-only|busy|not permitted|protected|undone|taken away|could not|another folder/i,
      );
  });

  // Who is kept from nothing gets what they want: or the attempts would show nothing.
  if (!("without" in host))
    test.each(attempts)("without a sandbox: %s", async (_what, command) => {
      await victim.server.run(["sh", "-c", `cd ${repo}; ${meant(command)}`]);
      for (const folder of folders()) await usersGit(folder);
      expect(existsSync(trace)).toBe(true);
    });

  describe("in a folder without a repository", () => {
    let folder: string;
    let own: string;
    beforeEach(async () => {
      folder = join(victim.work, crypto.randomUUID().slice(0, 8));
      mkdirSync(folder);
      victim.server.give(folder);
      own = await victim.session(`cwd=${folder}`);
    });

    const planted = `git init -q .; ${hook(".git/hooks/post-commit")}; ${settings(".git/config")}`;
    const bare = `git init -q --bare .; ${settings("config")}`;

    test.each([
      ["git init", planted],
      ["a bare repository that it turns into", bare],
      [
        "a git folder without git",
        `mkdir -p .git/objects .git/refs .git/hooks; echo 'ref: refs/heads/main' >.git/HEAD; ${settings(".git/config")}`,
      ],
      [
        "a git folder elsewhere",
        `git init -q deep; ${settings("deep/.git/config")}; echo "gitdir: $PWD/deep/.git" >.git`,
      ],
      ["a link to one", `git init -q deep; ${settings("deep/.git/config")}; ln -s deep/.git .git`],
    ])("%s", async (_what, command) => {
      const result = await victim.run(meant(command), own);
      await usersGit(folder);
      expect(existsSync(trace)).toBe(false);
      expect(result).toMatch(/undone/);
    });

    test("a job that plants a hook long after its call", async () => {
      await victim.occupy(`echo runs; ${meant(planted)}`, own, "job", folder);
      await victim.ended(own);
      await until("the look afterwards", async () => /undone/.test(await victim.read(`s/${own}/chat`)));
      await usersGit(folder);
      expect(existsSync(trace)).toBe(false);
    });
  });

  /** What the server reads of a repository, without git, each time that a call is prepared. */
  test.each([
    [
      "a FIFO for the common folder's name",
      "mkfifo p; rm -f .git/commondir; mv p .git/worktrees/tree/commondir",
      "tree",
    ],
    ["a FIFO for the git folder's name", "cd ../tree; rm .git; mkfifo .git", "tree"],
    ["an endless file for the git folder's name", "cd ../tree; rm .git; ln -s /dev/zero .git", "tree"],
    ["a terabyte for the git folder's name", "cd ../tree; rm .git; truncate -s 1T .git", "tree"],
    ["an endless name of the way back", "ln -sf /dev/zero .git/worktrees/tree/gitdir", "tree"],
    ["an endless common folder", "ln -sf /dev/zero .git/worktrees/tree/commondir", "tree"],
    [
      "a FIFO for a submodule's settings",
      "rm -f .git/modules/sub/config; mkfifo .git/modules/sub/config",
      "repo/sub",
    ],
    [
      "a terabyte of settings in a submodule",
      "rm -f .git/modules/sub/config; truncate -s 1T .git/modules/sub/config",
      "repo/sub",
    ],
    ["links in a circle", "mv .git/worktrees/tree .git/worktrees/t; ln -s tree .git/worktrees/tree", "tree"],
  ])("%s does not hold up the server", async (_what, command, folder) => {
    // From the folder above all of it can be written, with no repository around.
    const above = await victim.session(`cwd=${join(repo, "..")}`);
    await victim.run(`cd repo; ${command}`, above);
    expect(
      await victim.run("echo goes on", await victim.session(`cwd=${join(repo, "..", folder)}`)),
    ).toContain("goes on");
    expect(await victim.run("echo goes on", await victim.session(`cwd=${repo}`))).toContain("goes on");
  });

  test("hooks without measure do not take the server's memory", async () => {
    const before = peak();
    const own = await victim.session(`cwd=${repo}`);
    await attack("rm -rf .git; git init -q .; for i in $(seq 100); do truncate -s 4M .git/hooks/h$i; done");
    await victim.run("true", own);
    expect(peak() - before).toBeLessThan(200);
  });

  test("work trees without number do not hold up the server: the user is told what to remove", async () => {
    const result = await attack("mkdir -p .git/worktrees && cd .git/worktrees && seq 3000 | xargs mkdir");
    expect(result).toContain("more than 1000 folders of work trees and submodules");
    const waited = victim.run("true", await victim.session(`cwd=${repo}`));
    expect(await victim.read("version")).toContain("ollie");
    expect(await waited).toContain("more than 1000 folders of work trees and submodules");
  });

  /** MiB. */
  function peak(): number {
    return Number(/VmHWM:\s+(\d+)/.exec(contentOf(`/proc/${victim.server.pid}/status`))![1]) / 1024;
  }
});
