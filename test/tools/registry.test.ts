import { describe, expect, test } from "bun:test";
import { chmodSync, mkdirSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Host } from "../../src/tools/meta.ts";
import { createRegistry } from "../../src/tools/registry.ts";
import { folder, writeTool } from "./helper.ts";

const host: Host = {
  os: "linux",
  arch: "x64",
  env: { DISPLAY: ":0", MODE: "fast" },
  hasBinary: (name) => name === "grim",
  hasFile: (path) => path === "/etc/here",
};

/** A registry whose clock the test moves: every question sees the files as they are. */
function registryOf(...dirs: string[]) {
  let time = 0;
  return createRegistry(dirs.join(":"), host, () => (time += 2000));
}

const names = (registry: { list(): { name: string }[] }) => registry.list().map(({ name }) => name);

describe("the registry", () => {
  test("lists tools by name, with what the sidecar leaves out filled in", () => {
    const dir = folder();
    writeTool(dir, "b", "#!/bin/sh\n");
    writeTool(dir, "a", "#!/bin/sh\n", {
      readOnly: true,
      args: { properties: { x: { type: "string" } } },
      timeout: 5,
      tier: "hot",
      remote: false,
    });
    const registry = registryOf(dir);
    expect(names(registry)).toEqual(["a", "b"]);
    expect(registry.get("a")).toMatchObject({
      concurrency: "read",
      timeout: 5,
      tier: "hot",
      remote: false,
      path: join(dir, "a"),
      folder: dir,
    });
    expect(registry.get("b")).toMatchObject({
      concurrency: "write",
      timeout: 120,
      tier: "cold",
      remote: true,
      sudo: false,
    });
    expect(registry.spec(registry.get("a")!)).toEqual({
      name: "a",
      description: "does a",
      schema: { type: "object", properties: { x: { type: "string" } } },
    });
    expect(registry.problems()).toEqual([]);
  });

  test("notices tools that come, change and go, and folders that appear", () => {
    const dir = join(folder(), "later");
    const registry = registryOf(dir);
    expect(names(registry)).toEqual([]);
    mkdirSync(dir);
    writeTool(dir, "a", "#!/bin/sh\n");
    expect(names(registry)).toEqual(["a"]);
    writeTool(dir, "a", "#!/bin/sh\n", { description: "something else" });
    expect(registry.get("a")!.description).toBe("something else");
    rmSync(join(dir, "a.meta"));
    expect(names(registry)).toEqual([]);
  });

  test("looks at the files at most once a second, and gives the same objects while nothing changes", () => {
    const dir = folder();
    let time = 0;
    const registry = createRegistry(dir, host, () => time);
    expect(names(registry)).toEqual([]);
    writeTool(dir, "a", "#!/bin/sh\n");
    time = 999;
    expect(names(registry)).toEqual([]);
    time = 1000;
    expect(names(registry)).toEqual(["a"]);
    const before = registry.get("a");
    time = 5000;
    expect(registry.get("a")).toBe(before!);
  });

  test("takes the first folder that has the tool", () => {
    const [one, two] = [folder(), folder()];
    writeTool(one, "a", "#!/bin/sh\n", { description: "the first" });
    writeTool(two, "a", "#!/bin/sh\n", { description: "the second" });
    writeTool(two, "b", "#!/bin/sh\n");
    const registry = registryOf(one, "/nowhere", two);
    expect(registry.get("a")!.description).toBe("the first");
    expect(names(registry)).toEqual(["a", "b"]);
  });

  test("takes cmd from the sidecar's folder only", () => {
    const dir = folder();
    mkdirSync(join(dir, "bin"));
    writeFileSync(join(dir, "bin/x"), "#!/bin/sh\n", { mode: 0o755 });
    writeFileSync(join(dir, "a.meta"), JSON.stringify({ description: "a", cmd: "bin/x" }));
    writeFileSync(join(dir, "b.meta"), JSON.stringify({ description: "b", cmd: "../x" }));
    writeFileSync(join(dir, "c.meta"), JSON.stringify({ description: "c", cmd: "/bin/sh" }));
    const registry = registryOf(dir);
    expect(registry.get("a")!.path).toBe(join(dir, "bin/x"));
    expect(registry.problems().map(({ file }) => file)).toEqual([join(dir, "b.meta"), join(dir, "c.meta")]);
  });
});

describe("sidecars that cannot be used are reported with file and reason", () => {
  const cases: [string, string, RegExp][] = [
    ["no JSON", "{description:", /not JSON/],
    ["an unknown key", '{"description":"x","timout":5}', /timout: there is no such key/],
    [
      "an unknown key in a variant",
      '{"description":"x","variants":[{"match":{"distro":"x"}}]}',
      /variants\.0\.match\.distro/,
    ],
    ["a wrong value", '{"description":"x","tier":"warm"}', /tier: /],
    ["a negative time limit", '{"description":"x","timeout":-1}', /timeout: /],
    ["arguments that are no object", '{"description":"x","args":{"type":"string"}}', /args\.type: /],
    ["no description", "{}", /description: it is missing/],
    ["a list", "[]", /object/],
  ];
  test.each(cases)("%s", (_name, meta, reason) => {
    const dir = folder();
    writeTool(dir, "good", "#!/bin/sh\n");
    writeTool(dir, "bad", "#!/bin/sh\n");
    writeFileSync(join(dir, "bad.meta"), meta);
    const registry = registryOf(dir);
    expect(names(registry)).toEqual(["good"]);
    const [problem] = registry.problems();
    expect(problem!.file).toBe(join(dir, "bad.meta"));
    expect(problem!.reason).toMatch(reason);
  });

  test("no program, or one that is not executable, until there is one", () => {
    const dir = folder();
    writeFileSync(join(dir, "a.meta"), JSON.stringify({ description: "a", cmd: "a.sh" }));
    const registry = registryOf(dir);
    expect(registry.problems()[0]!.reason).toContain("does not exist");
    writeFileSync(join(dir, "a.sh"), "#!/bin/sh\n", { mode: 0o644 });
    expect(registry.problems()[0]!.reason).toContain("not executable");
    chmodSync(join(dir, "a.sh"), 0o755);
    expect(names(registry)).toEqual(["a"]);
    expect(registry.problems()).toEqual([]);
  });

  test("a name that providers refuse", () => {
    const dir = folder();
    writeTool(dir, "has space", "#!/bin/sh\n");
    expect(registryOf(dir).problems()[0]!.reason).toContain("letters, digits");
  });
});

describe("variants", () => {
  const chosen = (variants: unknown[]) => {
    const dir = folder();
    writeTool(dir, "a", "#!/bin/sh\n", { description: "top", variants });
    return registryOf(dir).get("a")?.description;
  };

  test.each([
    ["binary", { binary: "grim" }, { binary: "scrot" }],
    ["file", { file: "/etc/here" }, { file: "/etc/nowhere" }],
    ["os", { os: "linux" }, { os: "darwin" }],
    ["arch", { arch: "x64" }, { arch: "arm64" }],
    ["arch as uname says it", { arch: "x86_64" }, { arch: "aarch64" }],
    ["env set", { env: "DISPLAY" }, { env: "WAYLAND_DISPLAY" }],
    ["env with a value", { env: "MODE=fast" }, { env: "MODE=slow" }],
    ["env not set", { nenv: "WAYLAND_DISPLAY" }, { nenv: "DISPLAY" }],
    ["a list means any", { binary: ["scrot", "grim"] }, { binary: ["scrot", "import"] }],
    ["keys are ANDed", { os: "linux", binary: "grim" }, { os: "linux", binary: "scrot" }],
  ])("%s", (_name, yes, no) => {
    expect(chosen([{ match: yes, description: "chosen" }])).toBe("chosen");
    expect(chosen([{ match: no, description: "chosen" }])).toBeUndefined();
  });

  test("the first that matches is laid over the top level", () => {
    expect(
      chosen([
        { match: { os: "darwin" }, description: "one" },
        { match: { os: "linux" } },
        { match: { os: "linux" }, description: "three" },
      ]),
    ).toBe("top");
  });

  test("follow what the host has by now", () => {
    const dir = folder();
    const has = new Set<string>();
    let time = 0;
    writeTool(dir, "a", "#!/bin/sh\n", { variants: [{ match: { binary: "new" } }] });
    const registry = createRegistry(
      dir,
      { ...host, hasBinary: (name) => has.has(name) },
      () => (time += 2000),
    );
    expect(names(registry)).toEqual([]);
    has.add("new");
    expect(names(registry)).toEqual(["a"]);
  });
});
