import { afterEach, expect, test } from "bun:test";
import { mkdtempSync, readFileSync, rmSync, truncateSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Journal } from "../../../../src/remote/host/ops/journal.ts";
import { Host, request, run, sh } from "./ground.ts";

const folders: string[] = [];

function file(): string {
  const folder = mkdtempSync(join(tmpdir(), "ollie-journal-"));
  folders.push(folder);
  return join(folder, "journal.ndjson");
}

afterEach(() => {
  for (const folder of folders.splice(0)) rmSync(folder, { recursive: true, force: true });
});

async function written(path: string, records: unknown[]): Promise<Buffer> {
  const { journal } = Journal.open(path);
  for (const record of records) journal.append(record);
  await journal.close();
  return readFileSync(path);
}

const three = [{ n: 1 }, { n: 2, text: "zwei \n ü" }, { n: 3, text: "three ✓" }];

/** Two of the three records are read, and the next one is whole. */
async function goesOnAfterTwo(path: string): Promise<void> {
  const { journal, records } = Journal.open(path);
  expect(records).toEqual(three.slice(0, 2));
  await journal.commit({ n: 4 });
  await journal.close();
  const again = Journal.open(path);
  expect(again.records).toEqual([...three.slice(0, 2), { n: 4 }]);
  await again.journal.close();
}

test("wherever the last record is cut off, those before it are read, and the next one is whole", async () => {
  const path = file();
  const whole = await written(path, three);
  const start = whole.lastIndexOf(10, whole.length - 2) + 1;
  for (let size = start; size < whole.length; size++) {
    writeFileSync(path, whole.subarray(0, size));
    await goesOnAfterTwo(path);
  }
});

test("what a power loss has left of the last record, NULs in the place of its end, is no record", async () => {
  const path = file();
  const whole = await written(path, three);
  const start = whole.lastIndexOf(10, whole.length - 2) + 1;
  for (let from = start; from < whole.length; from++) {
    const torn = Buffer.from(whole);
    torn.fill(0, from);
    writeFileSync(path, torn);
    await goesOnAfterTwo(path);
  }
});

test("a damaged record does not take those after it with it", async () => {
  const path = file();
  const whole = await written(path, three);
  whole[whole.indexOf("zwei")] = 0;
  writeFileSync(path, whole);
  const { journal, records, damaged } = Journal.open(path);
  expect(records).toEqual([three[0], three[2]]);
  expect(damaged).toBe(1);
  await journal.close();
});

test("records that are put in the place of others survive, with what comes after them", async () => {
  const path = file();
  const { journal } = Journal.open<unknown>(path);
  await Promise.all(three.map((record) => journal.commit(record)));
  const late = journal.commit({ n: 4 });
  journal.rewrite([{ n: 5 }]);
  await late;
  await journal.commit({ n: 6 });
  await journal.close();
  const again = Journal.open(path);
  expect(again.records).toEqual([{ n: 5 }, { n: 6 }]);
  await again.journal.close();
});

test("wherever the end of an operation is cut off from the journal, it has been interrupted, and is not run again", async () => {
  const host = new Host();
  try {
    const asked = request([sh("echo once >> count; echo printed")]);
    const first = await host.open();
    await run(first, asked);
    await first.close();
    const path = join(host.folder, "journal.ndjson");
    const whole = readFileSync(path);
    const start = whole.lastIndexOf(10, whole.length - 2) + 1;
    for (let size = start; size < whole.length; size += 7) {
      writeFileSync(path, whole);
      truncateSync(path, size);
      const operations = await host.open();
      const report = await operations.start(asked);
      expect(report).toMatchObject({ status: "interrupted", hash: asked.hash, output: "printed\n" });
      expect(report.ended).toBeNumber();
      await operations.close();
    }
    expect(readFileSync(join(host.cwd, "count"), "utf8")).toBe("once\n");
  } finally {
    host.remove();
  }
}, 60_000);
