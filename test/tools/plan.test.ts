import { afterAll, beforeAll, beforeEach, describe, expect, test } from "bun:test";
import { type Served, serve } from "../namespace/serve.ts";
import { Workshop } from "./helper.ts";

let served: Served;
let shop: Workshop;

beforeAll(async () => {
  served = await serve();
  shop = new Workshop(undefined, {
    session: "a",
    agent: "default",
    address: () => ({ addr: `unix!${served.dir}/run/9p` }),
  });
});
afterAll(() => served[Symbol.asyncDispose]());

const plan = () => served.client.readText("session/a/plan");
beforeEach(() => served.client.writeFile("session/a/plan", ""));

describe("the plan", () => {
  test("gets tasks, one or several, one a line", async () => {
    expect(await shop.ok("task_add", { task: "first" })).toBe("1. [ ] first");
    expect(await shop.ok("task_add", { tasks: ["second\nline", "third"] })).toBe(
      "1. [ ] first\n2. [ ] second line\n3. [ ] third",
    );
    expect(await plan()).toBe("- [ ] first\n- [ ] second line\n- [ ] third\n");
    expect(await shop.no("task_add", {})).toContain("nothing to add");
  });

  test("keeps whatever else stands in it", async () => {
    await served.client.writeFile("session/a/plan", "# Goal\n\nwords without newline");
    await shop.ok("task_add", { task: "x" });
    expect(await plan()).toBe("# Goal\n\nwords without newline\n- [ ] x\n");
    expect(await shop.ok("task_clear", {})).toBe("The plan has no tasks.");
    expect(await plan()).toBe("# Goal\n\nwords without newline\n");
  });

  test("checks tasks by number, text or part of it", async () => {
    await shop.ok("task_add", { tasks: ["write the code", "write the tests", "ship"] });
    expect(await shop.ok("task_check", { task: 3 })).toContain("3. [x] ship");
    expect(await shop.ok("task_check", { task: "write the code" })).toContain("1. [x] write the code");
    expect(await shop.ok("task_check", { task: "TESTS" })).toContain("2. [x] write the tests");
    expect(await plan()).toBe("- [x] write the code\n- [x] write the tests\n- [x] ship\n");
  });

  test("checks nothing where it is not clear what", async () => {
    await shop.ok("task_add", { tasks: ["write the code", "write the tests"] });
    expect(await shop.no("task_check", { task: "write" })).toContain("more than one task fits");
    expect(await shop.no("task_check", { task: "sing" })).toContain("no task fits");
    expect(await shop.no("task_check", { task: "9" })).toContain("no task fits");
    expect(await plan()).not.toContain("[x]");
  });

  test("loses nothing when agents add to it at once", async () => {
    const names = ["one", "two", "three", "four", "five", "six"];
    await Promise.all(names.map((task, i) => shop.ok("task_add", { task }, `agent${i}`)));
    expect((await plan()).split("\n").filter(Boolean).sort()).toEqual(
      names.map((name) => `- [ ] ${name}`).sort(),
    );
  });
});

describe("tool_load", () => {
  test("loads into the calling agent", async () => {
    expect(await shop.ok("tool_load", { names: ["file_glob"] })).toContain("Loaded: file_glob");
    expect(served.agent.tools()).toContain("file_glob");
  });

  test("can unload nothing, and passes on what the server says", async () => {
    expect(await shop.no("tool_load", { names: ["-shell"] })).toContain("is no tool's name");
    shop.ctx.agent = "gone";
    expect(await shop.no("tool_load", { names: ["shell"] })).toContain("file does not exist");
    shop.ctx.agent = "default";
  });
});
