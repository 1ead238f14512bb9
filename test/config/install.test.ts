import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { loadAgent } from "../../src/config/agents.ts";
import { installData } from "../../src/config/install.ts";
import { resolvePaths } from "../../src/config/paths.ts";
import { provideData } from "../../src/config/provide.ts";

let folder: string;
let config: string;
let bin: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "ollie-install-"));
  config = join(folder, "config");
  bin = join(folder, "bin");
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

const read = (name: string) => readFileSync(join(config, name), "utf8");
const mode = (path: string) => (statSync(path).mode & 0o777).toString(8);
/** Makes the manifest say that an older version shipped `content` as `name`, untouched since. */
function pretendOlder(name: string, content: string): void {
  writeFileSync(join(config, name), content);
  const manifest = JSON.parse(read(".installed.json"));
  manifest.files[name] = new Bun.CryptoHasher("sha256").update(content).digest("hex");
  writeFileSync(join(config, ".installed.json"), JSON.stringify(manifest));
}

describe("a home that cannot be written", () => {
  /** Nobody can make a folder in /proc, not even root. */
  const closed = () => ({ home: "/proc", config: "/proc/.config/ollie", state: join(folder, "state") });
  const search = (paths: { state: string; config: string }) => resolvePaths({}, paths);

  test("costs no agents, prompts and tools: they are in the state folder, behind what the user has", () => {
    const paths = closed();
    const { written, fault } = provideData(paths);
    expect(written).toBeGreaterThan(0);
    expect(fault?.message).toMatch(
      /\/proc\/\.config\/ollie.*; agents, prompts and tools are those in .*\/state\/shipped$/,
    );
    const { agents, tools } = search(paths);
    expect(agents).toEqual([join(paths.config, "agents"), join(paths.state, "shipped/agents")]);
    expect(loadAgent("default", agents).file).toStartWith(join(paths.state, "shipped"));
    expect(existsSync(join(tools[1]!, "shell"))).toBe(true);
    expect(existsSync(join(paths.state, "shipped/bin"))).toBe(false);
  });

  test("is used again as soon as it can be written", () => {
    const paths = closed();
    provideData(paths);
    expect(provideData({ ...paths, home: folder, config }).fault).toBeUndefined();
    expect(search({ ...paths, config }).agents).toEqual([join(config, "agents")]);
    expect(existsSync(join(paths.state, "shipped"))).toBe(false);
  });

  test("that is only partly so is used as far as it can be; what the user removed does not come back elsewhere", () => {
    const home = join(folder, "home");
    const paths = { home, config, state: join(folder, "state") };
    mkdirSync(home);
    writeFileSync(join(home, ".local"), "");
    expect(provideData(paths).fault?.message).toContain(".local/bin/o");
    rmSync(join(config, "agents/tester.json"));
    expect(provideData(paths).fault?.message).toContain(".local/bin/o");
    expect(existsSync(join(config, "agents/tester.json"))).toBe(false);
    expect(search(paths).agents).toEqual([join(config, "agents")]);
    rmSync(join(home, ".local"));
    expect(provideData(paths)).toEqual({ written: 1 });
  });
});

describe("installing the shipped files", () => {
  test("the first time everything is written, programs executable, the env file private", () => {
    const report = installData(config, bin);
    expect(report.kept).toEqual([]);
    expect(report.written).toContain("agents/default.json");
    expect(report.written).toContain("bin/o");
    expect(mode(join(config, "env"))).toBe("600");
    expect(mode(join(config, "agents/default.json"))).toBe("644");
    expect(mode(join(config, "scripts/o"))).toBe("755");
    expect(mode(join(bin, "o"))).toBe("755");
    expect(installData(config, bin)).toEqual({ written: [], kept: [], removed: [] });
  });

  test("a file that nobody touched is upgraded, one that is no longer shipped goes", () => {
    installData(config, bin);
    pretendOlder("agents/default.json", "{}");
    pretendOlder("prompts/old.md", "old");
    expect(installData(config, bin)).toEqual({
      written: ["agents/default.json"],
      kept: [],
      removed: ["prompts/old.md"],
    });
    expect(read("agents/default.json")).toContain("description");
    expect(existsSync(join(config, "prompts/old.md"))).toBe(false);
  });

  test("what the user changed, removed or linked stays, is named, and still does the next time", () => {
    installData(config, bin);
    writeFileSync(join(config, "agents/default.json"), '{"model":"mine"}');
    rmSync(join(config, "agents/tester.json"));
    rmSync(join(config, "prompts/base.md"));
    writeFileSync(join(folder, "dotfile"), "mine");
    symlinkSync(join(folder, "dotfile"), join(config, "prompts/base.md"));
    for (const _ of [1, 2]) {
      expect(installData(config, bin)).toEqual({
        written: [],
        kept: ["agents/default.json", "agents/tester.json", "prompts/base.md"],
        removed: [],
      });
    }
    expect(read("agents/default.json")).toBe('{"model":"mine"}');
    expect(existsSync(join(config, "agents/tester.json"))).toBe(false);
    expect(readFileSync(join(folder, "dotfile"), "utf8")).toBe("mine");
  });

  test("files of the same names that were there before are the user's", () => {
    installData(config, bin);
    rmSync(join(config, ".installed.json"));
    writeFileSync(join(config, "prompts/code.md"), "mine");
    writeFileSync(join(bin, "o"), "another program");
    const report = installData(config, bin);
    expect(report).toEqual({ written: [], kept: ["prompts/code.md", "bin/o"], removed: [] });
    expect(readFileSync(join(bin, "o"), "utf8")).toBe("another program");
  });

  test("force brings the shipped files back, keeps the user's beside them, and never touches the env file", () => {
    installData(config, bin);
    writeFileSync(join(config, "env"), "OLLIE_OPENAI_KEY=secret");
    writeFileSync(join(config, "agents/default.json"), '{"model":"mine"}');
    rmSync(join(config, "agents/tester.json"));
    expect(installData(config, bin, true)).toEqual({
      written: ["agents/default.json", "agents/tester.json"],
      kept: ["env"],
      removed: [],
    });
    expect(read("env")).toBe("OLLIE_OPENAI_KEY=secret");
    expect(read("agents/default.json.bak")).toBe('{"model":"mine"}');
    expect(installData(config, bin)).toEqual({ written: [], kept: ["env"], removed: [] });
  });

  test("a file the user never had a say in keeps a mode the user gave it", () => {
    installData(config, bin);
    chmodSync(join(config, "agents/default.json"), 0o600);
    installData(config, bin);
    expect(mode(join(config, "agents/default.json"))).toBe("600");
  });

  test("a place that cannot be written is named", () => {
    writeFileSync(config, "a file in the way");
    expect(() => installData(config, bin)).toThrow(config);
  });
});
