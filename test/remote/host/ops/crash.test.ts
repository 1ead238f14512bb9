/** A daemon that is killed: nothing runs twice, and what is said afterwards is true. */
import { afterEach, expect, test } from "bun:test";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import type { OpStart } from "../../../../src/remote/protocol/operation.ts";
import { call, ended, Host, request, sh } from "./ground.ts";

const hosts: Host[] = [];

function newHost(): Host {
  const host = new Host();
  hosts.push(host);
  return host;
}

afterEach(() => {
  for (const host of hosts.splice(0)) host.remove();
});

/** Starts it in a process of its own, which is killed `delay` ms after it has said `word`. Resolves to all that it has said. */
async function killed(host: Host, asked: OpStart, word: string, delay: number): Promise<string> {
  const child = Bun.spawn(
    [process.execPath, join(import.meta.dir, "crash.child.ts"), host.top, JSON.stringify(asked)],
    { stdout: "pipe", stderr: "inherit", env: process.env },
  );
  const reader = child.stdout.getReader();
  const decoder = new TextDecoder();
  let said = "";
  while (!said.includes(word)) {
    const { value, done } = await reader.read();
    if (done) throw new Error(`the daemon has ended by itself after: ${said}`);
    said += decoder.decode(value, { stream: true });
  }
  await Bun.sleep(delay);
  child.kill("SIGKILL");
  await child.exited;
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return said;
    said += decoder.decode(value, { stream: true });
  }
}

function runs(host: Host): number {
  const file = join(host.cwd, "count");
  return existsSync(file) ? readFileSync(file, "utf8").trim().split("\n").length : 0;
}

const script = "echo once >> count; sleep 0.2; echo done";
const delays = [0, 1, 2, 4, 8, 15, 30, 60, 120, 240, 400];

for (const [kind, make] of [
  ["a step", () => request([sh(script)])],
  ["a tool call", () => request([call("count")])],
  ["a detached step", () => request([sh(script)], { detach: true })],
] as const)
  test(`${kind} runs at most once wherever its daemon is killed, and the report is true`, async () => {
    for (const word of ["open", "accepted"])
      for (const delay of delays) {
        const host = newHost();
        const asked = make();
        const said = await killed(host, asked, word, delay);
        const operations = await host.open();
        const before = operations.list();
        if (said.includes("accepted")) expect(before.map(({ opId }) => opId)).toEqual([asked.opId]);
        host.tool("count", script, { description: "counts" });
        await operations.start(asked);
        const report = await ended(operations, asked.opId);
        const where = `${delay} ms after ${word}: ${JSON.stringify(report)}`;
        // It was not known, and so has run now; or it was, and then it has not been run again.
        expect(runs(host), where).toBeLessThanOrEqual(1);
        if (before.length === 0 || asked.detach)
          expect(["exited", "interrupted"], where).toContain(report.status);
        if (report.status === "exited") {
          expect(runs(host), where).toBe(1);
          const { data } = await operations.output({
            opId: asked.opId,
            stream: kind === "a tool call" ? "text" : "out",
            from: 0,
            to: 100,
          });
          expect(kind === "a tool call" ? data : Buffer.from(data, "base64").toString(), where).toBe(
            "done\n",
          );
        } else expect(report, where).toMatchObject({ status: "interrupted", ended: expect.any(Number) });
        if (said.includes("ended")) expect(report.status, where).toBe("exited");
        await operations.close();
        // What it says does not change any more.
        const again = await host.open();
        expect(again.get(asked.opId).status, where).toBe(report.status);
        await again.close();
      }
  }, 300_000);

test("what a killed daemon ran has ended when the next one says that it was interrupted", async () => {
  const host = newHost();
  const asked = request([
    sh("setsid sh -c 'while :; do date >> beat; sleep 0.02; done' & while :; do sleep 0.1; done"),
  ]);
  await killed(host, asked, "accepted", 500);
  const operations = await host.open();
  expect(operations.get(asked.opId).status).toBe("interrupted");
  const beat = () => readFileSync(join(host.cwd, "beat"), "utf8");
  const then = beat();
  await Bun.sleep(300);
  expect(beat()).toBe(then);
  await operations.close();
});

test("a detached operation goes on, is found again, and can be ended", async () => {
  const host = newHost();
  const asked = request([sh("echo begun; while :; do sleep 0.05; done")], { detach: true });
  await killed(host, asked, "accepted", 300);
  const operations = await host.open();
  expect(operations.get(asked.opId)).toMatchObject({ status: "running", detach: true });
  expect(operations.running).toBe(1);
  await operations.close();
  const next = await host.open();
  expect(next.running).toBe(1);
  expect(await next.cancel({ opId: asked.opId, grace: 0.5 })).toMatchObject({ status: "cancelled" });
  expect(next.running).toBe(0);
  const { data } = await next.output({ opId: asked.opId, stream: "out", from: 0, to: 100 });
  expect(Buffer.from(data, "base64").toString()).toBe("begun\n");
  await next.close();
});
