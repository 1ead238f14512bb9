import { expect, test } from "bun:test";
import { readdirSync, readFileSync, unlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { StateLock } from "../../src/store/lock.ts";
import { Store } from "../../src/store/store.ts";
import { folder } from "./helper.ts";

function server(path: string) {
  const child = Bun.spawn([process.execPath, join(import.meta.dir, "lock.child.ts"), path], {
    stdout: "pipe",
  });
  const reader = child.stdout.getReader();
  const answer = reader.read().then(({ value }) => new TextDecoder().decode(value).trim());
  return { child, answer };
}

async function killed({ child }: ReturnType<typeof server>): Promise<void> {
  child.kill("SIGKILL");
  await child.exited;
}

test("a second server is refused with the pid of the first, and let in after a kill", async () => {
  const path = folder();
  const first = server(path);
  expect(await first.answer).toBe("open");
  const refusal = await Store.open(path).catch((error) => error);
  expect(refusal).toMatchObject({ kind: "busy" });
  expect(refusal.message).toContain(`pid ${first.child.pid}`);
  await killed(first);
  const { store } = await Store.open(path);
  await store.release();
});

test("of many servers that start at once on a dead one's folder, one gets it", async () => {
  const path = folder();
  const dead = server(path);
  await dead.answer;
  await killed(dead);
  const servers = Array.from({ length: 6 }, () => server(path));
  const answers = await Promise.all(servers.map(({ answer }) => answer));
  expect(answers.filter((answer) => answer === "open")).toHaveLength(1);
  const winner = servers[answers.indexOf("open")]!;
  for (const answer of answers) if (answer !== "open") expect(answer).toContain(`pid ${winner.child.pid}`);
  await Promise.all(servers.map(killed));
});

test("the same process does not open a folder twice, and may again after a release", async () => {
  const path = folder();
  const { store } = await Store.open(path);
  await expect(Store.open(path)).rejects.toThrow(`pid ${process.pid}`);
  await store.release();
  for (let i = 0; i < 3; i++) await (await Store.open(path)).store.release();
  expect(readdirSync(path).filter((name) => name.includes("lock"))).toHaveLength(1);
});

test("a pid that another process has now does not hold the lock", () => {
  const path = folder();
  StateLock.acquire(path).release();
  const boot = readFileSync("/proc/sys/kernel/random/boot_id", "utf8").trim();
  const stale = [
    { pid: process.pid, start: "1", boot },
    { pid: process.pid, start: "1", boot: "another" },
    { pid: 2 ** 22 + 1, start: "5", boot },
  ];
  for (const owner of [...stale.map((one) => JSON.stringify(one)), "", "\0\0\0", "{}"]) {
    writeFileSync(join(path, "lock.1000"), owner);
    const lock = StateLock.acquire(path);
    expect(lock.number).toBe(1001);
    lock.release();
    unlinkSync(join(path, "lock.1001"));
  }
});
