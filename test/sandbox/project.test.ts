import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { rmSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { House, may } from "./house.ts";

const asks = 'filesystem:\n  rw: [~/data]\nenv: [DOCKER_HOST]\nnetwork:\n  unix: ["/run/docker.sock"]\n';

let house: House;
let data: string;
beforeEach(() => {
  house = new House();
  data = house.dir("data");
});
afterEach(() => house.remove());

const approve = () => {
  const { file, text } = house.survey().project!;
  house.configs().approvals.approve(file, text);
};

describe("a project's file", () => {
  test("opens nothing by itself; a sentence names it, what it asks for and what approves it", () => {
    const file = house.file("project/.ollie-sandbox.yaml", asks);
    const { policy, remarks } = house.confine();
    expect(may(policy, data)).toBe("");
    expect(policy.env).not.toContain("DOCKER_HOST");
    expect(remarks).toHaveLength(1);
    for (const words of [file, "filesystem.rw: ~/data", "DOCKER_HOST", "/run/docker.sock"])
      expect(remarks[0]).toContain(words);
    expect(remarks[0]).toContain(`olliesrv sandbox approve ${house.cwd}`);
  });

  test("is told to each agent once", () => {
    house.file("project/.ollie-sandbox.yaml", asks);
    const configs = house.configs();
    const told = (listener: string) =>
      configs.policyFor({ cwd: house.cwd, tmp: house.tmp, listener }).remarks.length;
    expect([told("s/a"), told("s/a"), told("s/b")]).toEqual([1, 0, 1]);
  });

  test("counts once the user has approved just this content at just this place", () => {
    const file = house.file("project/.ollie-sandbox.yaml", asks);
    approve();
    const { policy, remarks } = house.confine();
    expect(may(policy, data)).toBe("rw");
    expect(policy.env).toContain("DOCKER_HOST");
    expect(remarks).toEqual([]);
    expect(statSync(house.configs().approvals.file).mode & 0o777).toBe(0o600);
    house.file("copy/.ollie-sandbox.yaml", asks);
    expect(may(house.confine(join(house.home, "copy")).policy, data)).toBe("");
    writeFileSync(file, `${asks}#\n`);
    expect(may(house.confine().policy, data)).toBe("");
    writeFileSync(file, asks);
    expect(may(house.confine().policy, data)).toBe("rw");
    expect(house.configs().approvals.revoke(file)).toBe(true);
    expect(house.configs().approvals.revoke(file)).toBe(false);
    expect(may(house.confine().policy, data)).toBe("");
  });

  test("and its approval count for the very next call, and so does a change of either", () => {
    const file = house.file("project/.ollie-sandbox.yaml", asks);
    const configs = house.configs();
    const now = () =>
      may(configs.policyFor({ cwd: house.cwd, tmp: house.tmp, listener: "s/a" }).policy, data);
    expect(now()).toBe("");
    configs.approvals.approve(file, asks);
    expect(now()).toBe("rw");
    writeFileSync(file, `${asks}#\n`);
    expect(now()).toBe("");
    house.config("default", "filesystem: { ro: [~/data] }");
    expect(now()).toBe("r");
  });

  test("is found at the top of the repository as well, that of the folder itself first", () => {
    for (const name of ["objects", "refs"]) house.dir(`project/.git/${name}`);
    house.file("project/.git/HEAD");
    const top = house.file("project/.ollie-sandbox.yaml", asks);
    const below = house.dir("project/sub/deep");
    expect(house.survey(below).project?.file).toBe(top);
    const own = house.file("project/sub/deep/.ollie-sandbox.yaml", asks);
    expect(house.survey(below).project?.file).toBe(own);
    expect(house.survey(house.dir("project/sub")).project?.file).toBe(top);
  });

  test("that asks for nothing the user's config does not give needs no approval", () => {
    house.file(
      "project/.ollie-sandbox.yaml",
      'filesystem: { ro: [/etc], rwx: ["{CWD}"] }\nenv: [GOPATH, NIX_PATH]\nnetwork: { unrestricted: false, connect_tcp: [443] }',
    );
    const { policy, remarks } = house.confine();
    expect(remarks).toEqual([]);
    expect(policy.network).toMatchObject({ unrestricted: false, connect: [443] });
  });

  test.each([
    ["filesystem: { rw: [/usr] }", "filesystem.rw: /usr"],
    ["filesystem: { ro: [~/not-there-yet] }", "filesystem.ro: ~/not-there-yet"],
    ["network: { bind_tcp: [80] }", "network.bind_tcp: 80"],
    ["network: { unrestricted: true }", "network.unrestricted: true"],
    ["general: { best_effort: true }", "general.best_effort: true"],
    ['env: ["*"]', "env: *"],
  ])("asks for what is beyond it: %s", (yaml, ask) => {
    house.config("default", "network: { unrestricted: false }");
    house.file("project/.ollie-sandbox.yaml", yaml);
    expect(house.survey().project?.asks).toEqual([ask]);
  });

  test.each([
    ["filesystem: { wr: [] }", "unknown key filesystem.wr"],
    ["extends: false", "always adds to the user's config"],
    ["a: [", "not YAML"],
    [`# ${"x".repeat(70_000)}`, "longer than 64 KiB"],
  ])("with a mistake does not count and keeps nothing from running", (yaml, words) => {
    house.file("project/.ollie-sandbox.yaml", yaml);
    const { policy, remarks } = house.confine();
    expect(may(policy, house.cwd)).toBe("rwx");
    expect(remarks.join()).toContain(words);
  });

  test("is not read through a link, and a FIFO is not waited for", () => {
    house.link("project/.ollie-sandbox.yaml", house.file("elsewhere.yaml", "env: [X]"));
    expect(house.confine().remarks.join()).toContain("is a link");
    rmSync(join(house.cwd, ".ollie-sandbox.yaml"));
    Bun.spawnSync(["mkfifo", join(house.cwd, ".ollie-sandbox.yaml")]);
    expect(house.confine().remarks.join()).toContain("is no regular file");
  });

  test("cannot make a terminal obey, nor a shell", () => {
    const cwd = house.dir("it's; rm");
    house.file("it's; rm/.ollie-sandbox.yaml", 'filesystem: { rw: ["/x\\e[2J"] }');
    const [remark] = house.confine(cwd).remarks;
    expect(remark).toContain("/x\\u{1b}[2J");
    expect(remark).toContain(`olliesrv sandbox approve '${house.home}/it'\\''s; rm'`);
  });

  test("a damaged file of approvals approves nothing and is not overwritten", () => {
    const file = house.file("project/.ollie-sandbox.yaml", asks);
    approve();
    writeFileSync(house.configs().approvals.file, "{");
    expect(may(house.confine().policy, data)).toBe("");
    expect(() => house.configs().approvals.approve(file, asks)).toThrow("is damaged");
  });
});
