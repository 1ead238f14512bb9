/** What is bounded: lists, time of what nobody waits for, what is remembered. */
import { afterEach, beforeEach, expect, test } from "bun:test";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import type { Operations } from "../../../../src/remote/host/ops/engine.ts";
import { until } from "../../../until.ts";
import { call, ended, Host, request, run, sh } from "./ground.ts";

let host: Host;
let operations: Operations;

beforeEach(async () => {
  host = new Host();
  operations = await host.open();
});

afterEach(async () => {
  await operations.close();
  host.remove();
});

test("what is detached is ended when its time is up, by the next daemon too", async () => {
  const now = request([sh("while :; do sleep 0.05; done")], { detach: true, timeout: 0.3 });
  expect(await run(operations, now)).toMatchObject({ status: "timeout" });
  const later = request([sh("while :; do sleep 0.05; done")], { detach: true, timeout: 0.5 });
  await operations.start(later);
  await until("it runs", () => operations.get(later.opId).status === "running");
  await operations.close();
  operations = await host.open();
  expect(await ended(operations, later.opId)).toMatchObject({ status: "timeout" });
});

test("a list stays small however much has been said; each result is to be had", async () => {
  host.tool("long", "seq 2600");
  const asked = Array.from({ length: 120 }, () => request([call("long")]));
  for (const each of asked) await run(operations, each);
  const list = operations.list();
  expect(JSON.stringify(list).length).toBeLessThanOrEqual(1024 * 1024 + list.length);
  expect(list.at(-1)!.opId).toBe(asked.at(-1)!.opId);
  expect(list.length).toBeGreaterThan(50);
  for (const { opId } of asked) expect(operations.get(opId).outcome!.text.length).toBeGreaterThan(11_000);
}, 60_000);

test("many that come at once are all on disk before they run, and all run once", async () => {
  const asked = Array.from({ length: 100 }, () =>
    request([{ program: "sh", args: ["-c", "echo x >> count"], env: {} }]),
  );
  await Promise.all(asked.flatMap((each) => [operations.start(each), operations.start(each)]));
  const known = readFileSync(join(host.folder, "journal.ndjson"), "utf8");
  for (const { opId } of asked) expect(known).toContain(`"accepted","opId":"${opId}"`);
  const reports = await Promise.all(asked.map(({ opId }) => ended(operations, opId)));
  expect(reports.map(({ status, code }) => `${status} ${code}`)).toEqual(asked.map(() => "exited 0"));
  expect(readFileSync(join(host.cwd, "count"), "utf8")).toBe("x\n".repeat(100));
}, 60_000);

test("the oldest that have ended are forgotten with their files, what runs is not", async () => {
  const running = request([sh("until [ -e go ]; do sleep 0.05; done")]);
  await operations.start(running);
  const first = request([{ program: "true", args: [], env: {} }]);
  await run(operations, first);
  for (let batch = 0; batch < 7; batch++)
    await Promise.all(
      Array.from({ length: 50 }, () => run(operations, request([{ program: "true", args: [], env: {} }]))),
    );
  expect(() => operations.get(first.opId)).toThrow("knows of no operation");
  expect(operations.get(running.opId).status).toBe("running");
  expect(readdirSync(join(host.folder, "ops")).length).toBeLessThanOrEqual(330);
  host.file("work/go", "");
  expect(await ended(operations, running.opId)).toMatchObject({ status: "exited", code: 0 });
  await operations.close();
  operations = await host.open();
  expect(operations.get(running.opId).status).toBe("exited");
  expect(() => operations.get(first.opId)).toThrow("knows of no operation");
}, 120_000);
