import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import {
  chmodSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { findRepository } from "../../src/sandbox/git.ts";
import { plainConfig } from "../../src/sandbox/git-config.ts";
import { GitGuard } from "../../src/sandbox/git-guard.ts";
import { House } from "./house.ts";

const config = "[core]\n\trepositoryformatversion = 0\n";
const evil = "[core]\n\tfsmonitor = touch /tmp/evil\n";

let house: House;
let guard: GitGuard;
let top: string;
let git: string;

beforeEach(() => {
  house = new House();
  guard = new GitGuard();
  top = house.cwd;
  git = join(top, ".git");
  makeRepository(git);
});
afterEach(() => house.remove());

function makeRepository(folder: string, text = config): void {
  for (const name of ["objects", "refs", "hooks"]) mkdirSync(join(folder, name), { recursive: true });
  writeFileSync(join(folder, "HEAD"), "ref: refs/heads/main\n");
  writeFileSync(join(folder, "config"), text);
  writeFileSync(join(folder, "hooks/pre-commit.sample"), "#!/bin/sh\n");
}

/** Begins a call; what is given back ends it. */
function watch(cwd = top, held: string[] = []): () => string[] {
  const settle = guard.watch({ cwd, repository: findRepository(cwd, house.home).repository, held });
  return () => settle(house.tmp);
}

const read = (path: string) => readFileSync(path, "utf8");
/** What was undone, by the content of what is kept. */
const kept = () => {
  const folder = join(house.tmp, "undone");
  return existsSync(folder) ? readdirSync(folder).map((name) => join(folder, name)) : [];
};

describe("what a call changes in git's config and hooks", () => {
  test("is undone, told, and kept", () => {
    const end = watch();
    writeFileSync(join(git, "config"), evil);
    writeFileSync(join(git, "hooks/pre-commit"), "#!/bin/sh\nevil\n", { mode: 0o755 });
    const told = end();
    expect(read(join(git, "config"))).toBe(config);
    expect(readdirSync(join(git, "hooks"))).toEqual(["pre-commit.sample"]);
    expect(told).toHaveLength(2);
    expect(told.join("\n")).toContain(`${git}/config is protected`);
    expect(kept()).toHaveLength(2);
    for (const path of kept()) expect(told.join("\n")).toContain(path);
    expect(read(kept().find((path) => path.endsWith("-config"))!)).toBe(evil);
  });

  test("nothing is said where nothing has changed, whatever else git writes", () => {
    const end = watch();
    writeFileSync(join(git, "index"), "x");
    writeFileSync(join(git, "HEAD"), "ref: refs/heads/other\n");
    writeFileSync(join(git, "config"), config);
    expect(end()).toEqual([]);
    expect(kept()).toEqual([]);
  });

  test.each(["config.worktree", "commondir"])(
    "a new %s is taken away: git would find its config by it",
    (name) => {
      const end = watch();
      writeFileSync(join(git, name), "../evil\n");
      expect(end().join()).toContain(join(git, name));
      expect(existsSync(join(git, name))).toBe(false);
    },
  );

  test("a hook that became a program, or was removed, is as it was", () => {
    const hook = join(git, "hooks/pre-commit.sample");
    chmodSync(hook, 0o644);
    const end = watch();
    chmodSync(hook, 0o755);
    end();
    expect(statSync(hook).mode & 0o777).toBe(0o644);
    const again = watch();
    rmSync(join(git, "hooks"), { recursive: true });
    again();
    expect(existsSync(hook)).toBe(true);
  });

  test("a link in its place is replaced, not followed", () => {
    const victim = house.file("victim", "mine\n");
    const end = watch();
    rmSync(join(git, "config"));
    symlinkSync(victim, join(git, "config"));
    rmSync(join(git, "hooks"), { recursive: true });
    symlinkSync(house.dir("victims"), join(git, "hooks"));
    end();
    expect(read(victim)).toBe("mine\n");
    expect(readdirSync(join(house.home, "victims"))).toEqual([]);
    expect(read(join(git, "config"))).toBe(config);
    expect(readdirSync(join(git, "hooks"))).toEqual(["pre-commit.sample"]);
  });

  test("from a subfolder as well", () => {
    const end = watch(house.dir("project/sub"));
    writeFileSync(join(git, "config"), evil);
    expect(end()).toHaveLength(1);
    expect(read(join(git, "config"))).toBe(config);
  });

  test("what mounts hold is not compared: somebody else may have changed it", () => {
    const end = watch(top, [join(git, "config")]);
    writeFileSync(join(git, "config"), "[user]\n\tname = me\n");
    expect(end()).toEqual([]);
    expect(read(join(git, "config"))).toContain("me");
  });
});

describe(".git itself", () => {
  test("replaced by another folder gets the config and hooks that were there", () => {
    const end = watch(top, [join(git, "config"), join(git, "hooks")]);
    renameSync(git, join(top, "old"));
    makeRepository(git, evil);
    writeFileSync(join(git, "hooks/post-checkout"), "evil", { mode: 0o755 });
    const told = end();
    expect(told.join("\n")).toContain(`${git} is another folder than before`);
    expect(read(join(git, "config"))).toBe(config);
    expect(readdirSync(join(git, "hooks"))).toEqual(["pre-commit.sample"]);
  });

  test("replaced by a pointer: the pointer is taken away", () => {
    const end = watch();
    renameSync(git, join(top, "old"));
    makeRepository(join(top, "evil"), evil);
    writeFileSync(git, "gitdir: evil\n");
    const told = end();
    expect(existsSync(git)).toBe(false);
    expect(told.join("\n")).toContain(`${git} is gone`);
  });

  test("a pointer that was there is put back", () => {
    rmSync(git, { recursive: true });
    writeFileSync(git, "gitdir: ../elsewhere\n");
    const end = watch();
    makeRepository(join(top, "evil"), evil);
    writeFileSync(git, "gitdir: evil\n");
    expect(end()).toHaveLength(1);
    expect(read(git)).toBe("gitdir: ../elsewhere\n");
  });

  test("a folder that was no repository yet, and is made one, is harmless afterwards", () => {
    rmSync(git, { recursive: true });
    mkdirSync(git);
    const end = watch();
    makeRepository(git, evil);
    end();
    expect(read(join(git, "config"))).not.toContain("fsmonitor");
  });

  test("put in front of the one that holds, in a subfolder, is harmless afterwards", () => {
    const sub = house.dir("project/sub");
    const end = watch(sub);
    makeRepository(join(sub, ".git"), evil);
    end();
    expect(read(join(sub, ".git/config"))).not.toContain("fsmonitor");
  });

  test("a bare repository put there is harmless afterwards", () => {
    const sub = house.dir("project/sub");
    const end = watch(sub);
    makeRepository(sub, evil);
    writeFileSync(join(sub, "hooks/post-checkout"), "evil", { mode: 0o755 });
    end();
    expect(read(join(sub, "config"))).not.toContain("fsmonitor");
    expect(existsSync(join(sub, "hooks/post-checkout"))).toBe(false);
  });
});

describe("git init in a call", () => {
  beforeEach(() => rmSync(git, { recursive: true }));

  test("stays, and nothing is said of it", () => {
    const end = watch();
    makeRepository(git);
    expect(end()).toEqual([]);
    expect(read(join(git, "config"))).toBe(config);
    expect(existsSync(join(git, "hooks/pre-commit.sample"))).toBe(true);
  });

  test("with hooks and settings that run programs: these are taken out, kept and told", () => {
    const end = watch();
    makeRepository(git, `${config}${evil}[remote "origin"]\n\turl = https://example.org/x\n`);
    writeFileSync(join(git, "hooks/pre-commit"), "evil", { mode: 0o755 });
    expect(end()).toHaveLength(2);
    expect(read(join(git, "config"))).toBe(
      `${config}[core]\n[remote "origin"]\n\turl = https://example.org/x\n`,
    );
    expect(readdirSync(join(git, "hooks"))).toEqual(["pre-commit.sample"]);
    expect(kept()).toHaveLength(2);
  });

  test("a pointer to nowhere believable is taken away", () => {
    const end = watch();
    makeRepository(join(top, "evil"), evil);
    writeFileSync(git, "gitdir: evil\n");
    expect(end()).toHaveLength(1);
    expect(existsSync(git)).toBe(false);
  });

  test("is none yet for a call that begins while it runs", () => {
    const one = watch();
    makeRepository(git, evil);
    const two = watch();
    one();
    two();
    expect(read(join(git, "config"))).not.toContain("fsmonitor");
  });
});

describe("calls side by side", () => {
  test("undo a change once", () => {
    const ends = [watch(), watch(), watch(house.dir("project/sub"))];
    writeFileSync(join(git, "config"), evil);
    expect(ends.map((end) => end().length)).toEqual([1, 0, 0]);
    expect(kept()).toHaveLength(1);
  });

  test("none takes another's change for what was there", () => {
    const one = watch();
    writeFileSync(join(git, "config"), evil);
    const two = watch(house.dir("project/sub"));
    one();
    two();
    expect(read(join(git, "config"))).toBe(config);
  });

  test("what somebody changed between calls is what the next one finds", () => {
    watch()();
    writeFileSync(join(git, "config"), "[user]\n\tname = me\n");
    expect(watch()()).toEqual([]);
    expect(read(join(git, "config"))).toContain("me");
  });

  test("what was allowed outside of the sandbox meanwhile stays", () => {
    const end = watch();
    writeFileSync(join(git, "config"), "[user]\n\tname = me\n");
    guard.accept();
    expect(end()).toEqual([]);
    expect(read(join(git, "config"))).toContain("me");
  });

  test("ending twice does nothing", () => {
    const end = watch();
    writeFileSync(join(git, "config"), evil);
    expect(end()).toHaveLength(1);
    expect(end()).toEqual([]);
  });
});

describe("a plain config", () => {
  test.each([
    '[core]\n\tbare = false\n[remote "origin"]\n\turl = git@example.org:x.git\n\tfetch = +refs/heads/*:refs/remotes/origin/*\n',
    '[branch "main"]\n\tremote = origin\n\tmerge = refs/heads/main\n# note\n',
  ])("is left as it is: %j", (text) => {
    expect(plainConfig(text)).toBe(text);
  });

  test.each([
    "[core]\n\thooksPath = /x\n",
    "[core]\n\tsshCommand = evil\n",
    "[core] fsmonitor = evil\n",
    '[core "x"]\n\tpager = evil\n',
    "[CORE]\n\tFSMONITOR = evil\n",
    "[include]\n\tpath = evil\n",
    '[includeIf "gitdir:/"]\n\tpath = evil\n',
    "[alias]\n\tst = !evil\n",
    '[filter "x"]\n\tclean = evil\n',
    '[remote "o"]\n\turl = ext::evil\n',
    '[remote "o"]\n\turl = --upload-pack=evil\n',
    '[remote "o"]\n\tuploadpack = evil\n',
    "[user]\n\tname = x\\\n[core]\\\n\tfsmonitor = evil\n",
    '[submodule "x"]\n\tupdate = !evil\n',
    "[credential]\n\thelper = !evil\n",
    "[diff]\n\texternal = evil\n",
  ])("loses what could run something: %j", (text) => {
    expect(plainConfig(text)).not.toContain("evil");
    expect(plainConfig(text)).not.toContain("hooksPath");
  });
});
