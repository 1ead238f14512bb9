import { afterEach, beforeEach, expect, test } from "bun:test";
import { createHash } from "node:crypto";
import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import fc from "fast-check";
import { checkManifest } from "../../../../src/remote/host/tools/manifest.ts";
import { ToolStore } from "../../../../src/remote/host/tools/methods.ts";
import { toolsHash } from "../../../../src/remote/protocol/hash.ts";
import type { ToolFile } from "../../../../src/remote/protocol/tools.ts";

let base: string;
let used: Set<string>;
let store: ToolStore;
beforeEach(() => {
  base = mkdtempSync(join(tmpdir(), "ollie-tools-"));
  used = new Set();
  store = new ToolStore(base, () => used);
});
afterEach(() => rmSync(base, { recursive: true, force: true }));

const sha = (bytes: string | Buffer) => createHash("sha256").update(bytes).digest("hex");

/** A set as a client would say it. */
function setOf(contents: Record<string, string>, mode = 0o755) {
  const files = Object.entries(contents).map(
    ([path, text]): ToolFile => ({ path, mode, sha256: sha(text), size: Buffer.byteLength(text) }),
  );
  return { hash: toolsHash(files), files };
}

async function put(
  text: string | Buffer,
  {
    piece = 3,
    from = 0,
    to,
    into = store,
  }: { piece?: number; from?: number; to?: number; into?: ToolStore } = {},
) {
  const bytes = Buffer.from(text);
  const end = to ?? bytes.length;
  for (let off = from; off < end || off === 0; off += piece) {
    const data = bytes.subarray(off, Math.min(off + piece, end));
    await into.put({
      sha256: sha(bytes),
      off,
      data: data.toString("base64"),
      last: off + data.length === bytes.length,
    });
    if (data.length === 0) break;
  }
}

async function codeOf(work: () => unknown): Promise<string | undefined> {
  try {
    await work();
  } catch (error) {
    return (error as { code?: string }).code;
  }
  return undefined;
}

const contents = {
  "0/bash": "#!/bin/sh\necho hi\n",
  "0/bash.meta": "{}",
  "1/lib/x.ts": "let x",
  "1/empty": "",
};

test("what is missing is brought, and the set is there as a whole", async () => {
  const set = setOf(contents);
  const { missing } = store.manifest(set);
  expect(new Set(missing)).toEqual(new Set(Object.values(contents).map(sha)));
  expect(await codeOf(() => store.activate(set))).toBe("tools.missing");
  expect(readdirSync(join(base, "tools"))).toEqual([]);
  for (const text of Object.values(contents)) await put(text);
  store.activate(set);
  const folder = join(base, "tools", set.hash);
  for (const [path, text] of Object.entries(contents))
    expect(readFileSync(join(folder, path), "utf8")).toBe(text);
  expect(statSync(join(folder, "0/bash")).mode & 0o777).toBe(0o755);
  expect(statSync(folder).mode & 0o777).toBe(0o700);
  expect(store.manifest(set)).toEqual({ missing: [], begun: {} });
});

test("no file can be written by others or lends rights, whatever it was like at home", async () => {
  const set = setOf({ "0/a": "a" }, 0o777);
  store.manifest(set);
  await put("a");
  store.activate(set);
  expect(statSync(join(base, "tools", set.hash, "0/a")).mode & 0o7777).toBe(0o755);
});

test("of the next version only what is new is asked for", async () => {
  const first = setOf(contents);
  store.manifest(first);
  for (const text of Object.values(contents)) await put(text);
  store.activate(first);
  const next = setOf({ ...contents, "0/bash": "#!/bin/sh\necho ho\n" });
  expect(store.manifest(next).missing).toEqual([sha("#!/bin/sh\necho ho\n")]);
});

test("an upload that broke off goes on where it was, also on another connection", async () => {
  const text = "0123456789".repeat(10);
  await put(text, { to: 48 });
  const again = new ToolStore(base, () => used);
  const set = setOf({ "0/a": text });
  expect(again.manifest(set).begun).toEqual({ [sha(text)]: 48 });
  expect(await codeOf(() => put(text, { from: 60, into: again }))).toBe("blob.offset");
  await put(text, { from: 48, into: again });
  expect(again.manifest(set).missing).toEqual([]);
});

test("two clients that bring the same at once both come through", async () => {
  const other = new ToolStore(base, () => used);
  const text = "x".repeat(100);
  const set = setOf({ "0/a": text });
  for (const one of [store, other]) one.manifest(set);
  await Promise.all([put(text, { piece: 7 }), put(text, { piece: 9, into: other })]);
  for (const one of [store, other]) one.activate(set);
  expect(readFileSync(join(base, "tools", set.hash, "0/a"), "utf8")).toBe(text);
  expect(readdirSync(join(base, "tools"))).toEqual([set.hash]);
  expect(readdirSync(join(base, "blobs"))).toEqual([sha(text)]);
});

test("what is not what it was said to be is not kept", async () => {
  const bytes = Buffer.from("right");
  const piece = (text: string) =>
    store.put({ sha256: sha(bytes), off: 0, data: Buffer.from(text).toString("base64"), last: true });
  expect(await codeOf(() => piece("wrong"))).toBe("blob.hash");
  expect(readdirSync(join(base, "blobs"))).toEqual([]);
  await piece("right");
});

test("a blob that was changed on the host is asked for again, and never becomes a tool", async () => {
  const set = setOf({ "0/a": "right" });
  store.manifest(set);
  await put("right");
  chmodSync(join(base, "blobs", sha("right")), 0o600);
  writeFileSync(join(base, "blobs", sha("right")), "wrong");
  expect(await codeOf(() => store.activate(set))).toBe("tools.missing");
  expect(store.manifest(set).missing).toEqual([sha("right")]);
});

test("a link in the place of a blob or its part is not followed", async () => {
  const target = join(base, "victim");
  writeFileSync(target, "mine");
  symlinkSync(target, join(base, "blobs", `.part-${sha("right")}`));
  expect(await codeOf(() => put("right"))).toBeDefined();
  expect(readFileSync(target, "utf8")).toBe("mine");
});

test.each([
  "/etc/passwd",
  "../x",
  "0/../../x",
  "0//x",
  "",
  ".",
  "0/.",
  "0/a\0b",
  "0\\..\\x",
  `0/${"n".repeat(300)}`,
  `${"a/".repeat(40)}b`,
])("no file is made at %p", async (path) => {
  expect(await codeOf(() => store.manifest(setOf({ [path]: "x" })))).toBe("tools.path");
});

test("a file cannot be a folder too, nor be there twice, nor can the hash be another", async () => {
  expect(await codeOf(() => store.manifest(setOf({ "0/a": "x", "0/a/b": "y" })))).toBe("tools.path");
  const { files } = setOf({ "0/a": "x" });
  const twice = [...files, ...files];
  expect(await codeOf(() => store.manifest({ hash: toolsHash(twice), files: twice }))).toBe("tools.path");
  expect(await codeOf(() => store.manifest({ hash: "0".repeat(64), files }))).toBe("tools.hash");
  expect(await codeOf(() => store.activate({ hash: "0".repeat(64) }))).toBe("tools.unknown");
});

test("whatever paths are said, those that are taken stay below the folder", () => {
  const name = fc.constantFrom("..", ".", "", "a", "b", "c/d", "/", "\\", "e\0");
  fc.assert(
    fc.property(fc.array(fc.array(name, { minLength: 1, maxLength: 5 }), { maxLength: 5 }), (paths) => {
      const files = paths.map((parts) => ({ path: parts.join("/"), mode: 0o755, sha256: sha(""), size: 0 }));
      try {
        for (const { path } of checkManifest({ hash: toolsHash(files), files }))
          expect(join("/set", path)).toBe(`/set/${path}`);
      } catch (error) {
        expect((error as { code?: string }).code).toBe("tools.path");
      }
    }),
  );
});

test("old sets go when no session uses them and they are not fresh", async () => {
  const make = async (text: string) => {
    const set = setOf({ "0/a": text });
    store.manifest(set);
    await put(text);
    store.activate(set);
    return join(base, "tools", set.hash);
  };
  const [one, two] = [await make("one"), await make("two")];
  used.add(two.split("/").at(-1)!);
  const running = Bun.spawn(["sh", "-c", "read line", `${one}/0/a`], {
    stdin: "pipe",
    env: { PATH: "/usr/bin:/bin" },
  });
  try {
    store.sweep();
    expect(existsSync(one)).toBe(true);
    store.sweep(Date.now() + 2 * 60 * 60 * 1000);
    expect(existsSync(one)).toBe(true);
  } finally {
    running.kill("SIGKILL");
    await running.exited;
  }
  store.sweep(Date.now() + 2 * 60 * 60 * 1000);
  expect([existsSync(one), existsSync(two)]).toEqual([false, true]);
  store.sweep(Date.now() + 8 * 24 * 60 * 60 * 1000);
  expect(readdirSync(join(base, "blobs"))).toEqual([]);
});

test("a folder for tools that somebody else could write is made ours, one that is a link is not used", () => {
  mkdirSync(join(base, "b"), { mode: 0o777 });
  chmodSync(join(base, "b"), 0o777);
  symlinkSync("/tmp", join(base, "b/blobs"));
  expect(() => new ToolStore(join(base, "b"), () => used)).toThrow("it is no folder");
});
