/** What runs outside of the sandbox on a host: only with a person's permission for that very request. */
import { afterEach, beforeEach, expect, test } from "bun:test";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import type { Operations } from "../../../../src/remote/host/ops/engine.ts";
import { sealGrant } from "../../../../src/remote/protocol/hash.ts";
import type { OpStart } from "../../../../src/remote/protocol/operation.ts";
import { lacksPrograms, lacksRoot } from "../../../needs.ts";
import { call, Host, request, run, sh } from "./ground.ts";

let host: Host;
let operations: Operations;

beforeEach(async () => {
  host = new Host();
  host.tool("free", 'echo "$OLLIE_CWD" > "$OUTSIDE/written" && echo free', { elevated: true });
  host.tool("root", "id -u", { sudo: true });
  host.tool("plain", "echo plain");
  host.settings = { ...host.settings, env: { OUTSIDE: host.folder } };
  operations = await host.open();
});

afterEach(async () => {
  await operations.close();
  host.remove();
});

const minute = 60_000;

/** As the user's own server makes it. */
function granted(
  asked: OpStart,
  { root = false, expires = Date.now() + minute, key = host.key, hash = asked.hash, opId = asked.opId } = {},
): OpStart {
  const grant = { scope: "once" as const, root, expires };
  return { ...asked, grant: { ...grant, mac: sealGrant(key, { opId, hash, ...grant }) } };
}

const code = (promise: Promise<unknown>) =>
  promise.then(
    () => "none",
    (error) => error.code as string,
  );

test("with the permission for it a tool runs outside of the sandbox, once", async () => {
  const asked = granted(request([call("free")]));
  const report = await run(operations, asked);
  expect(report.outcome).toMatchObject({ ok: true, how: "done" });
  expect(report.outcome!.text).toContain("elevated: allowed by the user (once)");
  expect(readFileSync(join(host.folder, "written"), "utf8")).toBe(`${host.cwd}\n`);
  host.file(join(host.folder, "written"), "");
  expect(await operations.start(asked)).toEqual(report);
  expect(readFileSync(join(host.folder, "written"), "utf8")).toBe("");
});

test("without one, with another's, an old or a forged one nothing is run, and nothing is known of it", async () => {
  const asked = request([call("free")]);
  const other = request([call("free")]);
  const changed = request([call("free", { x: 1 })], { opId: asked.opId });
  for (const wrong of [
    asked,
    granted(asked, { key: new Uint8Array(32) }),
    granted(asked, { expires: Date.now() - 1 }),
    granted(asked, { opId: other.opId }),
    granted(asked, { hash: changed.hash }),
    { ...granted(asked), grant: { ...granted(asked).grant!, expires: Date.now() + 2 * minute } },
    { ...changed, grant: granted(asked).grant },
    granted(asked, { root: true }),
    granted(request([call("root")])),
    granted(request([call("plain")])),
    granted(request([sh("true")]), { root: true }),
  ]) {
    expect(await code(operations.start(wrong)), JSON.stringify(wrong)).toMatch(/^op\.(grant|invalid)$/);
    expect(() => operations.get(wrong.opId)).toThrow("knows of no operation");
  }
  expect(existsSync(join(host.folder, "written"))).toBe(false);
  expect(operations.list()).toEqual([]);
});

test("a policy that allows nothing outside of the sandbox is above every permission", async () => {
  await operations.close();
  host.hard = { allow_elevated: false };
  operations = await host.open();
  expect(await code(operations.start(granted(request([call("free")]))))).toBe("policy.elevated");
  expect(await code(operations.start(granted(request([sh("true")]))))).toBe("policy.elevated");
});

test("a step with a permission runs outside of the sandbox, one without does not", async () => {
  const step = sh(`echo x > ${host.folder}/step`);
  expect(await run(operations, request([step]))).toMatchObject({ status: "exited", code: 2 });
  expect(existsSync(join(host.folder, "step"))).toBe(false);
  expect(await run(operations, granted(request([step])))).toMatchObject({ status: "exited", code: 0 });
  expect(existsSync(join(host.folder, "step"))).toBe(true);
});

const noSudo = lacksPrograms("sudo") || lacksRoot();

test.skipIf(noSudo)("as root, where sudo asks for nothing", async () => {
  const report = await run(operations, granted(request([call("root")]), { root: true }));
  expect(report.outcome).toMatchObject({ ok: true });
  expect(report.outcome!.text).toStartWith("0\n");
});

test.skipIf(noSudo)("a password that sudo does not ask for is neither executed nor kept", async () => {
  const secret = `touch ${host.top}/executed`;
  const asked = granted(request([call("root")]), { root: true });
  operations.secret(asked.opId, Buffer.from(secret));
  expect(await operations.sudoCheck(asked.opId)).toMatchObject({ password: false });
  const report = await run(operations, asked);
  expect(report.outcome).toMatchObject({ ok: false, how: "failed" });
  expect(existsSync(join(host.top, "executed"))).toBe(false);
  const found = Bun.spawnSync(["grep", "-rl", secret, host.top], { env: process.env });
  expect(found.stdout.toString()).toBe("");
});
