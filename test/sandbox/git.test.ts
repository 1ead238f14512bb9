import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { existsSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { House, may } from "./house.ts";

let house: House;
beforeEach(() => {
  house = new House();
});
afterEach(() => house.remove());

function git(cwd: string, ...args: string[]): void {
  const env = {
    PATH: process.env.PATH!,
    HOME: house.home,
    GIT_CONFIG_NOSYSTEM: "1",
    GIT_AUTHOR_NAME: "a",
    GIT_AUTHOR_EMAIL: "a@example.org",
    GIT_COMMITTER_NAME: "a",
    GIT_COMMITTER_EMAIL: "a@example.org",
    GIT_ALLOW_PROTOCOL: "file",
  };
  const { success, stderr } = Bun.spawnSync(["git", "-C", cwd, ...args], { env });
  if (!success) throw new Error(`git ${args.join(" ")}: ${stderr}`);
}

function repository(path: string): string {
  const top = house.dir(path);
  git(top, "init", "-q");
  writeFileSync(join(top, "file"), "content\n");
  git(top, "add", ".");
  git(top, "commit", "-q", "-m", "first");
  return top;
}

describe("a repository", () => {
  test("its hooks and config are frozen, the rest of .git can be written", () => {
    const top = repository("project");
    const { policy } = house.confine(top);
    expect(may(policy, join(top, ".git/index.lock"))).toBe("rwx");
    expect(policy.frozen).toContain(join(top, ".git/hooks"));
    expect(policy.frozen).toContain(join(top, ".git/config"));
    for (const path of policy.frozen) expect(existsSync(path)).toBe(true);
  });

  test("from a subfolder its git folder can be written, the rest of the work tree read and run", () => {
    const top = repository("project");
    const { policy } = house.confine(house.dir("project/sub"));
    expect(may(policy, join(top, ".git/index.lock"))).toBe("rwx");
    expect(may(policy, join(top, "file"))).toBe("rx");
    expect(policy.frozen).toContain(join(top, ".git/config"));
  });

  test("a config that only reads the working folder does not write to git either", () => {
    const top = repository("project");
    house.config("reader", 'extends: false\nfilesystem: { ro: ["{CWD}"] }');
    expect(may(house.confine(house.dir("project/sub"), "reader").policy, join(top, ".git/HEAD"))).toBe("r");
  });

  test("of the home folder is not that of a project without one", () => {
    git(house.home, "init", "-q");
    const { policy } = house.confine();
    expect(may(policy, join(house.home, ".git/HEAD"))).toBe("");
    expect(may(policy, join(house.home, "notes"))).toBe("");
  });

  test("a bare one has frozen hooks and config as well", () => {
    const bare = house.dir("bare.git");
    git(bare, "init", "-q", "--bare");
    const { policy } = house.confine(bare);
    expect(policy.frozen).toContain(join(bare, "config"));
    expect(policy.frozen).toContain(join(bare, "hooks"));
  });
});

describe("a linked work tree", () => {
  test("has the git folder of its repository, but not that one's work tree", () => {
    const main = repository("main");
    const tree = join(house.home, "tree");
    git(main, "worktree", "add", "-q", tree);
    const { policy, remarks } = house.confine(house.dir("tree/sub"));
    expect(remarks).toEqual([]);
    expect(may(policy, join(main, ".git/worktrees/tree/index.lock"))).toBe("rwx");
    expect(may(policy, join(main, ".git/objects"))).toBe("rwx");
    expect(may(policy, join(main, "file"))).toBe("");
    for (const name of ["config", "hooks", "worktrees/tree/commondir", "worktrees/tree/gitdir"])
      expect(policy.frozen).toContain(join(main, ".git", name));
  });

  test("the .git file of the folder itself is frozen", () => {
    const main = repository("main");
    const tree = join(house.home, "tree");
    git(main, "worktree", "add", "-q", tree);
    expect(house.confine(tree).policy.frozen).toContain(join(tree, ".git"));
  });

  test("whose common folder is said to be elsewhere is not believed", () => {
    const main = repository("main");
    const tree = join(house.home, "tree");
    git(main, "worktree", "add", "-q", tree);
    house.file(".ssh/id");
    writeFileSync(join(main, ".git/worktrees/tree/commondir"), `${house.home}/.ssh\n`);
    const { policy, remarks } = house.confine(tree);
    expect(may(policy, join(house.home, ".ssh/id"))).toBe("");
    expect(may(policy, join(main, ".git/HEAD"))).toBe("");
    expect(remarks.join()).toContain("common folder is elsewhere");
  });
});

describe("a submodule", () => {
  test("has its git folder in that of the repository around it, hooks and config frozen", () => {
    const other = repository("other");
    const top = repository("project");
    git(top, "-c", "protocol.file.allow=always", "submodule", "--quiet", "add", other, "deps/lib");
    const gitDir = join(top, ".git/modules/deps/lib");
    const inside = house.confine(join(top, "deps/lib"));
    expect(inside.remarks).toEqual([]);
    expect(may(inside.policy, join(gitDir, "index.lock"))).toBe("rwx");
    expect(may(inside.policy, join(top, ".git/HEAD"))).toBe("");
    expect(inside.policy.frozen).toContain(join(gitDir, "config"));
    expect(house.confine(top).policy.frozen).toContain(join(gitDir, "config"));
  });
});

describe("a .git that leads to a surprising place grants nothing", () => {
  const secret = () => house.file(".ssh/id");

  test("a file that names another folder", () => {
    const path = secret();
    house.file("project/.git", "gitdir: ../.ssh\n");
    const { policy, remarks } = house.confine();
    expect(may(policy, path)).toBe("");
    expect(remarks.join()).toContain("which is no git folder");
  });

  test("a file that names somebody else's git folder", () => {
    const other = repository("other");
    house.file("project/.git", `gitdir: ${other}/.git\n`);
    const { policy, remarks } = house.confine();
    expect(may(policy, join(other, ".git/HEAD"))).toBe("");
    expect(remarks.join()).toContain("does not name it in turn");
  });

  test("a file that names somebody else's work tree", () => {
    const other = repository("other");
    git(other, "worktree", "add", "-q", join(house.home, "tree"));
    house.file("project/.git", `gitdir: ${other}/.git/worktrees/tree\n`);
    const { policy, remarks } = house.confine();
    expect(may(policy, join(other, ".git/HEAD"))).toBe("");
    expect(remarks.join()).toContain("belongs to another folder");
  });

  test("a link", () => {
    const other = repository("other");
    house.link("project/.git", join(other, ".git"));
    const { policy, remarks } = house.confine();
    expect(may(policy, join(other, ".git/HEAD"))).toBe("");
    expect(remarks.join()).toContain("is a link to");
  });

  test.each(["", "gitdir:\n", "gitdir: /nowhere\n", `gitdir: ${"x/".repeat(3000)}\n`])(
    "nonsense: %j",
    (text) => {
      house.file("project/.git", text);
      expect(may(house.confine().policy, house.cwd)).toBe("rwx");
    },
  );
});
