import { afterEach, expect, test } from "bun:test";
import { createHash } from "node:crypto";
import {
  chmodSync,
  chownSync,
  existsSync,
  linkSync,
  lstatSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  statSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import fc from "fast-check";
import { withFd } from "../../../../src/remote/host/files/beneath.ts";
import { attributesOf, setAttribute } from "../../../../src/remote/host/files/native.ts";
import { lacks, lacksRoot, lacksSmallDisk, onSmallDisk } from "../../../needs.ts";
import { type Ground, ground } from "./ground.ts";

function attributes(): boolean {
  const { work, close } = ground();
  const able = withFd(openSync(join(work, "src/a.txt"), "r"), (fd) =>
    setAttribute(fd, "user.note", Buffer.from("x")),
  );
  close();
  return able;
}

const grounds: Ground[] = [];
function made(...[hard, kernel]: Parameters<typeof ground>): Ground {
  const one = ground(hard, kernel);
  grounds.push(one);
  return one;
}
afterEach(() => {
  for (const one of grounds.splice(0)) one.close();
});

function sha(text: string | Buffer): string {
  return createHash("sha256").update(text).digest("hex");
}
const odd = Buffer.from([0x61, 0xff, 0x62]);
const oddPath = (folder: string) => Buffer.concat([Buffer.from(`${folder}/`), odd]);
const temporary = (folder: string) => readdirSync(folder).filter((name) => name.startsWith(".ollie-"));

test("stat tells what is there, and that nothing is", async () => {
  const { call, work } = made();
  chmodSync(join(work, "src/a.txt"), 0o640);
  expect(await call("file.stat", { path: "src/a.txt", hash: true })).toMatchObject({
    exists: true,
    kind: "file",
    size: 8,
    mode: 0o640,
    sha256: sha("one\ntwo\n"),
  });
  expect(await call("file.stat", { path: "near" })).toMatchObject({ kind: "link", target: "src/a.txt" });
  expect(await call("file.stat", { path: "." })).toMatchObject({ kind: "dir" });
  expect(await call("file.stat", { path: "none/at/all" })).toEqual({ exists: false });
});

test("a text is read in pieces that cut no character", async () => {
  const { call, work } = made();
  const text = "aé€😀z".repeat(50);
  writeFileSync(join(work, "t"), text);
  for (const bytes of [4, 5, 6, 7, 16]) {
    let all = "";
    for (let off = 0, eof = false; !eof; ) {
      const answer = await call("file.read", { path: "t", off, bytes });
      all += answer.text;
      ({ next: off, eof } = answer);
    }
    expect(all).toBe(text);
  }
  const whole = await call("file.read", { path: "t" });
  expect(whole).toMatchObject({ eof: true, sha256: sha(text), size: Buffer.byteLength(text) });
});

test("what is no text is told, and blob.get has its bytes", async () => {
  const { call, failing, work } = made();
  const bytes = Buffer.from([0xff, 0xfe, 0, 1, 2]);
  writeFileSync(join(work, "b"), bytes);
  expect(await failing("file.read", { path: "b" })).toBe("file.not_utf8");
  expect(await call("blob.get", { path: "b" })).toEqual({
    data: bytes.toString("base64"),
    off: 0,
    size: 5,
    eof: true,
  });
  expect(await call("blob.get", { path: "b", off: 3, bytes: 1 })).toMatchObject({ data: "AQ==", eof: false });
  expect(await call("blob.get", { path: "b", off: 99 })).toMatchObject({ data: "", eof: true });
});

test("answers keep to the limits of the policy", async () => {
  const { call, failing, work } = made({ max_read_bytes: 4, max_write_bytes: 3, max_list_entries: 2 });
  expect(await call("file.read", { path: "src/a.txt" })).toMatchObject({
    text: "one\n",
    next: 4,
    eof: false,
    size: 8,
  });
  expect(await failing("file.write", { path: "x", text: "four" })).toBe("file.too_large");
  expect(existsSync(join(work, "x"))).toBe(false);
  const first = await call("file.list", {});
  expect(first.entries).toHaveLength(2);
  const second = await call("file.list", { after: first.next });
  expect([...first.entries, ...second.entries].map(({ path }) => path)).toEqual([
    "away",
    "near",
    "nearby",
    "src",
  ]);
});

test("a new file is whole, with the permissions that were asked for", async () => {
  const { call, work } = made();
  expect(await call("file.write", { path: "src/new", text: "hé", mode: 0o750 })).toEqual({
    sha256: sha("hé"),
    size: 3,
    created: true,
  });
  expect(readFileSync(join(work, "src/new"), "utf8")).toBe("hé");
  expect(statSync(join(work, "src/new")).mode & 0o777).toBe(0o750);
  expect(temporary(join(work, "src"))).toEqual([]);
});

test("a file that is written over keeps its permissions, and other names of it keep the old text", async () => {
  const { call, work } = made();
  const file = join(work, "src/a.txt");
  chmodSync(file, 0o705);
  linkSync(file, join(work, "other"));
  await call("file.write", { path: "src/a.txt", data: Buffer.from("new").toString("base64"), mode: 0o600 });
  expect(statSync(file).mode & 0o7777).toBe(0o705);
  expect(readFileSync(file, "utf8")).toBe("new");
  expect(readFileSync(join(work, "other"), "utf8")).toBe("one\ntwo\n");
});

test.skipIf(lacks("a file system with extended attributes", attributes()))(
  "extended attributes are kept",
  async () => {
    const { call, work } = made();
    const file = join(work, "src/a.txt");
    withFd(openSync(file, "r"), (fd) => setAttribute(fd, "user.note", Buffer.from("kept")));
    await call("file.write", { path: "src/a.txt", text: "new" });
    const kept = withFd(openSync(file, "r"), attributesOf);
    expect(kept.get("user.note")?.toString()).toBe("kept");
  },
);

test.skipIf(lacksRoot())("the owner is kept", async () => {
  const { call, work } = made();
  const file = join(work, "src/a.txt");
  chownSync(file, 1234, 4321);
  await call("file.write", { path: "src/a.txt", text: "new" });
  expect(statSync(file)).toMatchObject({ uid: 1234, gid: 4321 });
});

test.each([true, false])("absent, content and any are expected as they say (openat2: %p)", async (kernel) => {
  const { call, failing, work } = made({}, kernel);
  expect(await failing("file.write", { path: "src/a.txt", text: "x", expect: "absent" })).toBe(
    "file.conflict",
  );
  expect(await failing("file.write", { path: "none", text: "x", expect: { sha256: sha("") } })).toBe(
    "file.conflict",
  );
  expect(await failing("file.cas", { path: "src/a.txt", text: "x", sha256: sha("other") })).toBe(
    "file.conflict",
  );
  expect(readFileSync(join(work, "src/a.txt"), "utf8")).toBe("one\ntwo\n");
  await call("file.cas", { path: "src/a.txt", text: "x", sha256: sha("one\ntwo\n") });
  await call("file.write", { path: "new", text: "y", expect: "absent" });
  expect([readFileSync(join(work, "src/a.txt"), "utf8"), readFileSync(join(work, "new"), "utf8")]).toEqual([
    "x",
    "y",
  ]);
  expect(temporary(work)).toEqual([]);
});

test("of many who expect the same content one wins", async () => {
  const { call, work } = made();
  const tries = await Promise.allSettled(
    Array.from({ length: 20 }, (_, index) =>
      call("file.cas", { path: "src/a.txt", text: `by ${index}`, sha256: sha("one\ntwo\n") }),
    ),
  );
  expect(tries.filter(({ status }) => status === "fulfilled")).toHaveLength(1);
  expect(readFileSync(join(work, "src/a.txt"), "utf8")).toMatch(/^by \d+$/);
});

test("what is no file is neither read nor replaced, and nothing waits for it", async () => {
  const { failing, work } = made();
  Bun.spawnSync(["mkfifo", join(work, "fifo")], { env: { PATH: process.env.PATH! } });
  for (const path of ["fifo", "src"]) {
    for (const [name, more] of [
      ["file.read", {}],
      ["blob.get", {}],
      ["file.write", { text: "x" }],
    ] as const)
      expect([path, name, await failing(name, { path, ...more })]).toEqual([path, name, "file.kind"]);
  }
  expect(lstatSync(join(work, "fifo")).isFIFO()).toBe(true);
});

test("names that are no UTF-8 are listed, read, written and renamed by their bytes", async () => {
  const { call, work } = made();
  writeFileSync(oddPath(work), "odd");
  const name = { b64: odd.toString("base64") };
  const { entries } = await call("file.list", {});
  expect(entries.map(({ path }: { path: unknown }) => path)).toContainEqual(name);
  expect((await call("file.read", { path: name })).text).toBe("odd");
  await call("file.write", { path: name, text: "new" });
  await call("file.rename", { from: name, to: "plain" });
  expect(readFileSync(join(work, "plain"), "utf8")).toBe("new");
});

test("a walk goes through everything below in one order, whatever the pages", async () => {
  const { call, work } = made();
  for (const folder of ["b", "b/c", "b-", "b.d", "z"]) mkdirSync(join(work, folder));
  for (const file of ["b/x", "b/c/y", "b-/1", "b.d/2", "z/é"]) writeFileSync(join(work, file), "");
  const { entries } = await call("file.walk", {});
  const all = entries.map(({ path }: { path: string }) => path);
  expect(all).toEqual(
    "away b b/c b/c/y b/x b- b-/1 b.d b.d/2 near nearby src src/a.txt up z z/é".split(" ").sort((a, b) => {
      const [left, right] = [a.split("/"), b.split("/")];
      for (const [index, part] of left.entries()) {
        const other = right[index];
        if (other === undefined) return 1;
        if (part !== other) return Buffer.compare(Buffer.from(part), Buffer.from(other));
      }
      return -1;
    }),
  );
  for (const limit of [1, 2, 5]) {
    const paged: string[] = [];
    for (let after: string | undefined; ; ) {
      const page = await call("file.walk", { limit, after });
      paged.push(...page.entries.map(({ path }: { path: string }) => path));
      if (!page.next) break;
      after = page.next;
    }
    expect(paged).toEqual(all);
  }
});

test("search finds a text literally, tells where, and goes on file by file", async () => {
  const { call, work } = made();
  writeFileSync(join(work, "src/b.txt"), "no\nA.B here\n");
  writeFileSync(join(work, "src/bin"), Buffer.from("a.b\0"));
  expect(await call("file.search", { text: "a.b", ignoreCase: true, glob: "src/*" })).toEqual({
    matches: [{ path: "src/b.txt", line: 2, column: 1, text: "A.B here" }],
    left: 1,
  });
  expect((await call("file.search", { text: "a.b" })).matches).toEqual([]);
  const first = await call("file.search", { text: "o", limit: 1 });
  expect(first.next).toBe("src/a.txt");
  const second = await call("file.search", { text: "o", after: first.next });
  expect(second.matches.map(({ path }: { path: string }) => path)).toEqual(["src/b.txt"]);
});

test("what the policy denies is in no list, no search and no snapshot", async () => {
  const { call, failing, work } = made();
  mkdirSync(join(work, "secrets"));
  writeFileSync(join(work, "secrets/x"), "needle");
  const clean = await call("file.snapshot", {});
  writeFileSync(join(work, "src/.env"), "needle");
  const shown = JSON.stringify([
    await call("file.list", {}),
    await call("file.walk", {}),
    await call("file.search", { text: "needle" }),
    await call("file.snapshot", { entries: true }),
  ]);
  expect(shown).not.toMatch(/secrets|\.env|needle/);
  expect((await call("file.snapshot", {})).root).toBe(clean.root);
  for (const name of ["file.stat", "file.read", "file.list", "file.remove"])
    expect([name, await failing(name, { path: "secrets/x" })]).toEqual([name, "file.denied"]);
});

test("a folder with something denied in it is neither removed nor given another name", async () => {
  const { failing, work } = made();
  mkdirSync(join(work, "p/deep"), { recursive: true });
  writeFileSync(join(work, "p/first"), "");
  writeFileSync(join(work, "p/deep/.env"), "KEY=1");
  expect(await failing("file.remove", { path: "p", recursive: true })).toBe("file.denied");
  expect(await failing("file.rename", { from: "p", to: "q" })).toBe("file.denied");
  expect(existsSync(join(work, "p/first")) && existsSync(join(work, "p/deep/.env"))).toBe(true);
  writeFileSync(join(work, "plain"), "x");
  expect(await failing("file.rename", { from: "plain", to: ".env" })).toBe("file.denied");
});

test("only what is readable is found, also deep below what is not", async () => {
  const { call, failing } = made({ readable: ["src/*.txt"] });
  const { entries } = await call("file.walk", {});
  expect(entries.map(({ path }: { path: string }) => path)).toEqual(["src/a.txt"]);
  expect(await failing("file.read", { path: "up" })).toBe("file.denied");
});

test("the same files have the same root, and every change another", async () => {
  const [one, two] = [made(), made()];
  utimesSync(join(two.work, "src/a.txt"), 1, 1);
  const root = async ({ call }: Ground) => (await call("file.snapshot", {})).root;
  expect(await root(one)).toBe(await root(two));
  const seen = new Set([await root(one)]);
  const changes: [string, () => void][] = [
    ["content", () => writeFileSync(join(one.work, "src/a.txt"), "one\ntwO\n")],
    ["mode", () => chmodSync(join(one.work, "src/a.txt"), 0o600)],
    ["name", () => mkdirSync(join(one.work, "empty"))],
    ["link", () => symlinkSync("nowhere", join(one.work, "empty/link"))],
    ["odd", () => writeFileSync(oddPath(one.work), "")],
  ];
  for (const [what, change] of changes) {
    change();
    const now = await root(one);
    expect([what, seen.has(now)]).toEqual([what, false]);
    seen.add(now);
  }
  const { entries, files } = await one.call("file.snapshot", { entries: true });
  expect(files).toBe(2);
  expect(entries.find(({ path }: { path: unknown }) => path === "src/a.txt").sha256).toBe(sha("one\ntwO\n"));
});

test("folders are made, with those on the way where that is asked for", async () => {
  const { call, failing, work } = made();
  expect(await failing("file.mkdir", { path: "x/y" })).toBe("file.missing");
  await call("file.mkdir", { path: "x/y/z", parents: true, mode: 0o700 });
  expect(statSync(join(work, "x/y/z")).mode & 0o777).toBe(0o700);
  await call("file.mkdir", { path: "x/y/z", parents: true });
  expect(await failing("file.mkdir", { path: "x/y" })).toBe("file.conflict");
  expect(await failing("file.mkdir", { path: "src/a.txt/z", parents: true })).toBe("file.kind");
});

test("a folder is removed with what is in it only where that is asked for; links in it are not followed", async () => {
  const { call, failing, work, outside } = made();
  symlinkSync("../../outside", join(work, "src/link"));
  expect(await failing("file.remove", { path: "src" })).toBe("file.not_empty");
  await call("file.remove", { path: "src", recursive: true });
  expect(existsSync(join(work, "src"))).toBe(false);
  expect(readdirSync(outside)).toEqual(["secret"]);
  expect(await failing("file.remove", { path: "." })).toBe("file.denied");
  expect(await failing("file.remove", { path: "src" })).toBe("file.missing");
});

test("a rename takes no name that somebody has, unless it may replace a file", async () => {
  const { call, failing, work } = made();
  writeFileSync(join(work, "b"), "b");
  expect(await failing("file.rename", { from: "b", to: "src/a.txt" })).toBe("file.conflict");
  expect(await failing("file.rename", { from: "b", to: "src", replace: true })).toBe("file.conflict");
  expect(await failing("file.rename", { from: "src", to: "src/in/itself" })).toBe("file.missing");
  expect(await failing("file.rename", { from: "src", to: "src/itself" })).toBe("file.name");
  await call("file.rename", { from: "b", to: "src/a.txt", replace: true });
  expect(readFileSync(join(work, "src/a.txt"), "utf8")).toBe("b");
  await call("file.rename", { from: "src", to: "lib" });
  expect(existsSync(join(work, "lib/a.txt"))).toBe(true);
});

test("whatever is written is what is read", async () => {
  const { call } = made();
  await fc.assert(
    fc.asyncProperty(fc.uint8Array({ maxLength: 3000 }), async (bytes) => {
      const written = await call("file.write", { path: "f", data: Buffer.from(bytes).toString("base64") });
      const read = await call("blob.get", { path: "f" });
      expect(Buffer.from(read.data, "base64")).toEqual(Buffer.from(bytes));
      expect(written.sha256).toBe(sha(Buffer.from(bytes)));
    }),
    { numRuns: 50 },
  );
});

test.skipIf(lacksSmallDisk())("on a full disk the old file stays whole, and nothing is left behind", () => {
  const script = join(import.meta.dir, "full-disk.ts");
  const run = onSmallDisk("1m", (root) => [process.execPath, script, root]);
  expect(JSON.parse(run.stdout.toString())).toEqual({ code: "file.full", old: "old", names: ["f"] });
});
