import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { join } from "node:path";
import { House, may } from "./house.ts";

let house: House;
beforeEach(() => {
  house = new House();
});
afterEach(() => house.remove());

describe("layers", () => {
  test("default.yaml goes on top of the shipped default, NAME.yaml on top of both", () => {
    const [one, two] = [house.dir("one"), house.dir("two")];
    house.config("default", "filesystem: { ro: [~/one] }\nenv: [ONE]");
    house.config("web", "filesystem: { rw: [~/two] }\nenv: [TWO]");
    const plain = house.confine().policy;
    expect([may(plain, one), may(plain, two), may(plain, "/etc")]).toEqual(["r", "", "r"]);
    const web = house.confine(house.cwd, "web").policy;
    expect([may(web, one), may(web, two), may(web, "/etc")]).toEqual(["r", "rw", "r"]);
    expect(web.env).toContain("ONE");
    expect(web.env).toContain("TWO");
  });

  test("extends: false lets nothing before it count, and so can give less", () => {
    house.config("default", "filesystem: { rw: [~] }".replace("~", '"~"'));
    house.config("reader", 'extends: false\nfilesystem: { rox: [/usr], ro: ["{CWD}"] }');
    const { policy } = house.confine(house.cwd, "reader");
    expect(may(policy, house.cwd)).toBe("r");
    expect(may(policy, "/etc")).toBe("");
    expect(policy.network.unrestricted).toBe(false);
    expect(policy.env).toEqual([]);
    // Without these no tool runs at all.
    expect(may(policy, join(house.tmp, "tmp"))).toBe("rwx");
  });

  test("the last word on the network counts; lists of ports add up", () => {
    house.config("default", "network: { connect_tcp: [80] }");
    house.config("web", "network: { unrestricted: false, connect_tcp: [443], bind_tcp: [8080] }");
    expect(house.confine().policy.network).toMatchObject({ unrestricted: true });
    expect(house.confine(house.cwd, "web").policy.network).toEqual({
      unrestricted: false,
      bind: [8080],
      connect: [80, 443],
      unix: [],
    });
  });

  test("best_effort is off unless somebody says so", () => {
    expect(house.confine().policy.bestEffort).toBe(false);
    house.config("old", "general: { best_effort: true }");
    expect(house.confine(house.cwd, "old").policy.bestEffort).toBe(true);
  });

  test("a name that does not exist is refused with those that do", () => {
    house.config("web", "");
    for (const name of ["wbe", "../web", "web/"]) {
      expect(() => house.confine(house.cwd, name)).toThrow(
        `no sandbox config ${name}: there are default, web`,
      );
      expect(() => house.configs().check(name)).toThrow("there are default, web");
    }
    house.configs().check("");
    house.configs().check("default");
    house.configs().check("web");
  });

  test("a mistake names file and key", () => {
    const file = house.config("web", "filesystem: { r: [/x] }");
    expect(() => house.configs().check("web")).toThrow(`${file}: unknown key filesystem.r`);
  });

  test("a file that changes is noticed", async () => {
    const configs = house.configs();
    const ask = () => configs.policyFor({ cwd: house.cwd, tmp: house.tmp, listener: "s/a" }).policy.env;
    expect(ask()).not.toContain("NEW");
    house.config("default", "env: [NEW]");
    while (!ask().includes("NEW")) await Bun.sleep(50);
  });
});
