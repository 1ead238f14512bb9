/** What tools could otherwise widen their own sandbox with: the working folders they choose, and what lies beside the owner's socket. */
import { afterEach, beforeEach, expect, test } from "bun:test";
import { mkdirSync, mkdtempSync, realpathSync, rmdirSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { resolvePaths } from "../../src/config/paths.ts";
import { SandboxConfigs } from "../../src/sandbox/configs.ts";
import { withNeighbours } from "../../src/session/ground.ts";

let folder: string;
let configs: SandboxConfigs;
const at = (...names: string[]) => join(folder, ...names);
const policy = (cwd: string, bound?: string) =>
  configs.policyFor({ cwd, bound, tmp: at("home/.local/state/ollie/tmp/one"), listener: "s/a" }).policy;

beforeEach(() => {
  folder = realpathSync(mkdtempSync(join(tmpdir(), "ollie-bound-")));
  for (const path of ["home/.local/state/ollie/tmp/one", "work/inner", "other", "run/own.tools"])
    mkdirSync(at(path), { recursive: true });
  const environment = { HOME: at("home"), PATH: "" };
  configs = new SandboxConfigs({
    paths: resolvePaths(environment),
    environment,
    sockets: withNeighbours(at("run/own")),
  });
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

test("a policy is made around the folder that bounds the working folder, whatever has taken its place", () => {
  const { filesystem } = policy(at("work/inner"), at("work"));
  rmdirSync(at("work/inner"));
  symlinkSync(at("other"), at("work/inner"));
  const again = policy(at("work/inner"), at("work")).filesystem;
  for (const { rw, rwx } of [filesystem, again]) {
    expect([...rw, ...rwx]).toContain(at("work"));
    expect([...rw, ...rwx]).not.toContain(at("other"));
  }
});

test("no policy is made around a folder that has become a link", () => {
  rmdirSync(at("work/inner"));
  symlinkSync(at("other"), at("work/inner"));
  expect(() => policy(at("work/inner"), at("work/inner"))).toThrow(
    `the working folder ${at("work/inner")} leads to ${at("other")} by now`,
  );
  // Where nothing has been resolved yet, links are as good as any path.
  expect(policy(at("work/inner")).filesystem.rwx).toContain(at("other"));
});

test("the owner's token and the sockets of tools are hidden also where their folder is not ollie's alone", () => {
  writeFileSync(at("run/own.token"), "secret");
  mkdirSync(at("home/.config/ollie/sandbox"), { recursive: true });
  writeFileSync(at("home/.config/ollie/sandbox/default.yaml"), `filesystem: { rwx: ["${at("run")}"] }\n`);
  const { hidden, filesystem } = policy(at("work"));
  expect(hidden).toContain(at("run/own.token"));
  expect(hidden).toContain(at("run/own.tools"));
  const { list, ...given } = filesystem;
  expect(list).toContain(at("run"));
  expect(Object.values(given).flat()).not.toContain(at("run"));
});
