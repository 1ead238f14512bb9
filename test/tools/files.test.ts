import { describe, expect, test } from "bun:test";
import {
  chmodSync,
  existsSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { Workshop } from "./helper.ts";

const shop = new Workshop();
const text = (name: string) => readFileSync(shop.path(name), "utf8");

/** Writes a file and lets the agent read it. */
async function known(name: string, content: string | Uint8Array): Promise<void> {
  shop.write(name, content);
  await shop.ok("file_read", { path: name });
}

describe("file_read", () => {
  test("numbers lines and shows a part when asked", async () => {
    shop.write("f", "one\ntwo\nthree\nfour\n");
    expect(await shop.ok("file_read", { path: "f" })).toBe(
      "     1\tone\n     2\ttwo\n     3\tthree\n     4\tfour",
    );
    expect(await shop.ok("file_read", { path: "f", offset: 2, limit: 2 })).toBe(
      "     2\ttwo\n     3\tthree\n[lines 2-3 of 4; offset=4 goes on]",
    );
    expect(await shop.ok("file_read", { path: "f", offset: 4 })).toBe("     4\tfour\n[lines 4-4 of 4]");
    expect(await shop.no("file_read", { path: "f", offset: 5 })).toContain("has only 4 lines");
  });

  test("of one file by many calls at once", async () => {
    shop.write("popular", "one\n");
    const answers = await Promise.all(
      Array.from({ length: 12 }, () => shop.ok("file_read", { path: "popular" })),
    );
    expect(new Set(answers)).toEqual(new Set(["     1\tone"]));
  });

  test("pages through a long file without a gap, never cut by the dispatcher", async () => {
    const lines = Array.from({ length: 5000 }, (_, i) => `line ${i + 1} äöü ${"x".repeat(i % 90)}`);
    shop.write("long", lines.join("\n"));
    const seen: string[] = [];
    for (let offset = 1; offset <= lines.length; ) {
      const page = await shop.ok("file_read", { path: "long", offset });
      expect(page).not.toContain("left out");
      seen.push(...page.split("\n").flatMap((line) => /^ *\d+\t(.*)$/.exec(line)?.[1] ?? []));
      offset = Number(/offset=(\d+) goes on/.exec(page)?.[1] ?? Number.POSITIVE_INFINITY);
    }
    expect(seen).toEqual(lines);
  });

  test("cuts long lines and shows the rest by column", async () => {
    const line = Array.from({ length: 1000 }, (_, i) => String(i).padStart(4, "0")).join("");
    shop.write("min.js", `${line}\nshort\n`);
    let seen = "";
    for (let column = 1; column; ) {
      const page = await shop.ok("file_read", { path: "min.js", column });
      seen += /^ {5}1\t(\d*)/.exec(page)![1];
      column = Number(/column=(\d+) shows/.exec(page)?.[1] ?? 0);
    }
    expect(seen).toBe(line);
  });

  test("takes a line of 40 MB and a line far behind in stride", async () => {
    shop.write("huge", `${"a".repeat(40_000_000)}\n${"b\n".repeat(100_000)}last\n`);
    expect((await shop.ok("file_read", { path: "huge", limit: 1 })).length).toBeLessThan(3000);
    expect(await shop.ok("file_read", { path: "huge", offset: 100_002 })).toBe(
      "100002\tlast\n[lines 100002-100002 of 100002]",
    );
  });

  test("says what else there is to know of a text", async () => {
    shop.write("crlf", "a\r\nb");
    expect(await shop.ok("file_read", { path: "crlf" })).toBe(
      "     1\ta\n     2\tb\n[lines end in CRLF]\n[no newline at the end of the file]",
    );
    shop.write("latin1", new Uint8Array([0x63, 0x61, 0x66, 0xe9, 0x0a]));
    expect(await shop.ok("file_read", { path: "latin1" })).toBe(
      "     1\tcaf\uFFFD\n[not all of it is UTF-8]",
    );
    shop.write("escapes", "\x1b[31mred\x1b[0m\n");
    expect(await shop.ok("file_read", { path: "escapes" })).toBe("     1\t␛[31mred␛[0m");
    shop.write("empty", "");
    expect(await shop.ok("file_read", { path: "empty" })).toBe("(the file is empty)");
  });

  test("says what a binary file is", async () => {
    shop.write("pic.png", Buffer.concat([Buffer.from("\x89PNG\r\n\x1a\n", "latin1"), Buffer.alloc(100)]));
    const page = await shop.ok("file_read", { path: "pic.png" });
    expect(page).toStartWith("Binary file, 108 bytes, PNG image. It begins with:\n89 50 4e 47");
    expect(await shop.ok("file_read", { path: "/bin/sh" })).toContain("ELF program");
    shop.write("utf16", Buffer.from("\uFEFFhello", "utf16le"));
    expect(await shop.ok("file_read", { path: "utf16" })).toContain("text in UTF-16; iconv");
  });

  test("never waits at what is no file", async () => {
    mkdirSync(shop.path("dir"));
    expect(await shop.no("file_read", { path: "dir" })).toContain("is a folder");
    expect(await shop.no("file_read", { path: "/dev/zero" })).toContain("not a regular file");
    expect(await shop.no("file_read", { path: "none" })).toContain("none does not exist");
    Bun.spawnSync(["mkfifo", shop.path("fifo")]);
    expect(await shop.no("file_read", { path: "fifo" })).toContain("not a regular file");
  });
});

describe("file_write", () => {
  test("makes a file and its folders", async () => {
    expect(await shop.ok("file_write", { path: "new/deep/f", content: "x\n" })).toBe(
      "new/deep/f: 2 bytes written",
    );
    expect(text("new/deep/f")).toBe("x\n");
  });

  test("replaces what the agent has read or written, and shows the difference", async () => {
    await shop.ok("file_write", { path: "w", content: "one\ntwo\n" });
    expect(await shop.ok("file_write", { path: "w", content: "one\n2\n" })).toBe(
      "w: 6 bytes written\n--- w\n+++ w\n@@ -1,2 +1,2 @@\n one\n-two\n+2",
    );
    shop.write("unread", "precious\n");
    expect(await shop.no("file_write", { path: "unread", content: "" })).toContain("read it first");
    expect(text("unread")).toBe("precious\n");
  });

  test("keeps mode, CRLF and byte order mark, which file_read does not show", async () => {
    await known("style", "\uFEFFa\r\nb\r\n");
    chmodSync(shop.path("style"), 0o750);
    await shop.ok("file_write", { path: "style", content: "a\nc\n" });
    expect(text("style")).toBe("\uFEFFa\r\nc\r\n");
    expect(statSync(shop.path("style")).mode & 0o777).toBe(0o750);
  });

  test("leaves nothing beside the file", async () => {
    await shop.ok("file_write", { path: "alone/f", content: "x" });
    expect(readdirSync(shop.path("alone"))).toEqual(["f"]);
  });
});

describe("file_edit", () => {
  test("replaces and returns a unified diff", async () => {
    await known("e", "a\nb\nc\n");
    expect(await shop.ok("file_edit", { path: "e", old: "b", new: "B" })).toBe(
      "e: 1 place changed\n--- e\n+++ e\n@@ -1,3 +1,3 @@\n a\n-b\n+B\n c",
    );
    expect(await shop.ok("file_edit", { path: "e", old: "c", new: "C" })).toContain("+C");
    expect(text("e")).toBe("a\nB\nC\n");
  });

  test("refuses a file that was not read, does not exist or is binary, and an edit that is none", async () => {
    shop.write("unseen", "a\n");
    expect(await shop.no("file_edit", { path: "unseen", old: "a", new: "b" })).toContain("read it first");
    expect(await shop.no("file_edit", { path: "nowhere", old: "a", new: "b" })).toContain(
      "file_write makes new files",
    );
    await known("same", "a\n");
    expect(await shop.no("file_edit", { path: "same", old: "a", new: "a" })).toContain("nothing to change");
    expect(await shop.no("file_edit", { path: "same", old: "", new: "a" })).toContain("is empty");
  });

  test("follows links to the file itself", async () => {
    await known("real", "a\n");
    mkdirSync(shop.path("links"));
    symlinkSync("../real", shop.path("links/l1"));
    symlinkSync("links/l1", shop.path("l2"));
    await shop.ok("file_edit", { path: "l2", old: "a", new: "b" });
    expect(text("real")).toBe("b\n");
    expect(lstatSync(shop.path("l2")).isSymbolicLink()).toBe(true);
    symlinkSync("to-be", shop.path("dangling"));
    await shop.ok("file_write", { path: "dangling", content: "x" });
    expect(text("to-be")).toBe("x");
    symlinkSync("loop", shop.path("loop"));
    expect(await shop.no("file_write", { path: "loop", content: "x" })).toContain("symbolic links");
  });

  test("does not write what is read-only", async () => {
    await known("ro", "a\n");
    chmodSync(shop.path("ro"), 0o444);
    expect(await shop.no("file_edit", { path: "ro", old: "a", new: "b" })).toContain("read-only");
    expect(text("ro")).toBe("a\n");
  });

  test("waits for another writer's lock and takes over one that was left behind", async () => {
    await known("locked", "a\n");
    const lock = shop.path(".locked.ollie-new");
    writeFileSync(lock, "");
    const edit = shop.ok("file_edit", { path: "locked", old: "a", new: "b" });
    await Bun.sleep(300);
    expect(text("locked")).toBe("a\n");
    Bun.spawnSync(["touch", "-d", "1 hour ago", lock]);
    await edit;
    expect(text("locked")).toBe("b\n");
    expect(existsSync(lock)).toBe(false);
  });
});

describe("two agents on one file", () => {
  test("neither loses the other's work: the second is told what has changed", async () => {
    shop.write("notes", "seed\n");
    await shop.ok("file_read", { path: "notes" }, "A");
    await shop.ok("file_read", { path: "notes" }, "B");
    await shop.ok("file_write", { path: "notes", content: "seed\nnote-A\n" }, "A");
    const refusal = await shop.no("file_write", { path: "notes", content: "seed\nnote-B\n" }, "B");
    expect(refusal).toContain("has changed since you read it");
    expect(refusal).toContain(" seed\n+note-A");
    expect(await shop.no("file_edit", { path: "notes", old: "seed", new: "x" }, "B")).toContain("+note-A");
    expect(text("notes")).toBe("seed\nnote-A\n");
    await shop.ok("file_read", { path: "notes" }, "B");
    await shop.ok("file_edit", { path: "notes", old: "note-A\n", new: "note-A\nnote-B\n" }, "B");
    expect(text("notes")).toBe("seed\nnote-A\nnote-B\n");
  });

  test("of many edits at once, each that was accepted is in the file", async () => {
    const agents = Array.from({ length: 8 }, (_, i) => `agent${i}`);
    shop.write("busy", agents.map((name) => `${name}: -\n`).join(""));
    for (const name of agents) await shop.ok("file_read", { path: "busy" }, name);
    const outcomes = await Promise.all(
      agents.map((name) =>
        shop.call("file_edit", { path: "busy", old: `${name}: -`, new: `${name}: done` }, name),
      ),
    );
    const content = text("busy");
    expect(outcomes.filter(({ ok }) => ok).length).toBeGreaterThan(0);
    for (const [i, name] of agents.entries()) expect(content.includes(`${name}: done`)).toBe(outcomes[i]!.ok);
  }, 20_000);

  test("a change by any other program counts as well", async () => {
    await known("formatted", "a  b\n");
    await shop.ok("shell", { command: "echo 'a b' >formatted" });
    expect(await shop.no("file_edit", { path: "formatted", old: "a", new: "x" })).toContain("+a b");
  });
});
