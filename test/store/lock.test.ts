import { expect, test } from "bun:test";
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { lockHolder, StateLock } from "../../src/store/lock.ts";
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

test("whoever asks in the process that holds the lock does not make it let go", async () => {
  const path = folder();
  const { store } = await Store.open(path);
  expect(lockHolder(path)).toBe(process.pid);
  await Store.open(path).catch(() => {});
  expect(await server(path).answer).toContain(`pid ${process.pid}`);
  await store.release();
  expect(lockHolder(path)).toBeUndefined();
});

test("asking who holds it keeps nobody from having it, and finds nobody where there is nothing", async () => {
  const path = folder();
  expect(lockHolder(path)).toBeUndefined();
  expect(lockHolder(join(path, "missing"))).toBeUndefined();
  const first = server(path);
  let refused = false;
  for (let opened = false; !opened; await Bun.sleep(0)) {
    opened = lockHolder(path) === first.child.pid;
    refused ||= (await Promise.race([first.answer, Bun.sleep(0)]))?.includes("another server") ?? false;
  }
  expect([refused, await first.answer]).toEqual([false, "open"]);
  await killed(first);
  expect(lockHolder(path)).toBeUndefined();
});

test("what the file holds does not matter", () => {
  const path = folder();
  for (const text of ["", JSON.stringify({ pid: process.pid }), "\0\0\0"]) {
    writeFileSync(join(path, "lock"), text);
    StateLock.acquire(path).release();
    expect(readFileSync(join(path, "lock"), "utf8")).toBe(text);
  }
});
