/** The lsp_* tools and their bridge against a server that does everything the protocol allows, and more. */
import { describe, expect, setDefaultTimeout, test } from "bun:test";
import { existsSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { runs, until } from "../exec/helper.ts";
import { fakeSession, hover, session, startsOf } from "./lsp-shop.ts";

// Each starts several processes, on machines that have other things to do.
setDefaultTimeout(120_000);

const place = { path: "a.fake", line: 1, symbol: "one" };

describe("places", () => {
  test.each([
    ["plain text", "one two\n", 5, 4],
    ["tabs, which count as one", "\t\tone\n", 3, 2],
    ["emoji", "😀 one\n", 3, 3],
    ["emoji made of several", "👨‍👩‍👧 one\n", 3, 9],
    ["letters with combining marks", "e\u0301e\u0301 one\n", 4, 5],
    ["the end of the line", "one\n", 4, 3],
  ])("are counted in characters: %s", async (_what, text, column, character) => {
    const shop = fakeSession([], {}, { "a.fake": text });
    expect((await hover(shop, { column })).position).toEqual({ line: 0, character });
    const shown = await shop.ok("lsp_hover", { path: "a.fake", line: 1, column });
    expect(shown).toStartWith(`a.fake:1:${column}:\n`);
  });

  test("may be told by the name that stands there, as a whole word first", async () => {
    const shop = fakeSession([], {}, { "a.fake": "\nbone 😀 one\n" });
    const { position } = await hover(shop, { line: 2, column: undefined, symbol: "one" });
    expect(position).toEqual({ line: 1, character: 8 });
    const part = await hover(shop, { line: 2, column: undefined, symbol: "bon" });
    expect(part.position.character).toBe(0);
  });

  test.each([
    [{ line: 3, column: 1 }, "the file has only 2 lines; there is no line 3"],
    [{ line: 1, column: 9 }, "line 1 has 3 characters; column 9 is beyond its end"],
    [{ line: 1, symbol: "two" }, '"two" is not in line 1, which is: one'],
    [{ line: 1 }, 'say which: "column", or "symbol"'],
    [{ path: "b.fake", line: 1, column: 1 }, "b.fake does not exist"],
  ])("that are none are explained: %j", async (args, words) => {
    const shop = fakeSession([], {}, { "a.fake": "one\ntwo\n" });
    expect(await shop.no("lsp_hover", { path: "a.fake", ...args })).toContain(words);
  });

  test("in results are counted likewise, with the line of source", async () => {
    const shop = fakeSession([], {}, { "a.fake": "\t👨‍👩‍👧 one e\u0301 one\n" });
    expect(await shop.ok("lsp_references", place)).toBe(
      "2 in 1 file:\na.fake:1:4: 👨‍👩‍👧 one e\u0301 one\na.fake:1:10: 👨‍👩‍👧 one e\u0301 one",
    );
  });

  test("in lines that end in CRLF, and behind a byte order mark", async () => {
    const shop = fakeSession([], {}, { "a.fake": "\uFEFFone\r\n one\r\n" });
    expect(await shop.ok("lsp_references", place)).toBe("2 in 1 file:\na.fake:1:1: one\na.fake:2:2: one");
    expect((await hover(shop)).text).toBe("one\r\n one\r\n");
  });
});

describe("definition", () => {
  test.each([[["links"]], [[]]])("takes every form of an answer: %j", async (behaviour) => {
    expect(await fakeSession(behaviour).ok("lsp_definition", place)).toBe("a.fake:1:1: one");
  });

  test("may lead into what is no file, or nowhere", async () => {
    const shop = fakeSession(["archive"]);
    expect(await shop.ok("lsp_definition", place)).toStartWith("jar:file:///lib.jar!/A.class:5:3");
    shop.write("behaviour", "null");
    expect(await shop.ok("lsp_definition", place)).toBe("No definition of what is at a.fake:1:1 was found");
  });

  test("of a kind that the server does not know says so", async () => {
    expect(await fakeSession().no("lsp_definition", { ...place, kind: "type" })).toContain(
      "fake: this server cannot do that (it has no typeDefinitionProvider)",
    );
  });
});

test("references are cut, and counted", async () => {
  const text = await fakeSession(["many"]).ok("lsp_references", place);
  expect(text).toStartWith("1000 in 1 file:\n");
  expect(text.match(/^a\.fake:/gm)).toHaveLength(200);
  expect(text).toContain("[200 of 1000 are shown; file_grep with a glob shows those of one folder]");
});

describe("symbols", () => {
  test("of a file come nested, or flat from older servers", async () => {
    const shop = fakeSession([], {}, { "a.fake": "x\n\ty\n" });
    expect(await shop.ok("lsp_symbols", { path: "a.fake" })).toBe(
      "a.fake:1:1: class box\na.fake:2:2:   method in",
    );
    shop.write("behaviour", "flat");
    expect(await shop.ok("lsp_symbols", { path: "a.fake" })).toBe("a.fake:1:1: method old in box");
  });

  test("of the project are found by name, without naming a file", async () => {
    expect(await fakeSession().ok("lsp_symbols", { query: "thing" })).toBe("a.fake:1:1: function thing");
  });

  test("need a file or a name, and a language that has a server", async () => {
    const shop = fakeSession();
    expect(await shop.no("lsp_symbols", {})).toContain('say what to list: "path"');
    rmSync(shop.path("a.fake"));
    expect(await shop.no("lsp_symbols", { query: "x" })).toContain("no file in . is of a language that");
  });
});

test("completion shows what fits what stands there, in the server's order", async () => {
  const shop = fakeSession([], {}, { "a.fake": "a 😀.pre\n" });
  const shown = "prefix\tvariable\ta text\npreface\tfunction";
  expect(await shop.ok("lsp_completion", { path: "a.fake", line: 1, column: 8 })).toBe(shown);
  expect(await shop.ok("lsp_completion", { path: "a.fake", line: 1, after: "😀.p" })).toBe(shown);
  expect(await shop.no("lsp_completion", { path: "a.fake", line: 1 })).toContain(
    'say where: "column", or "after"',
  );
});

describe("files that change between calls", () => {
  test("are told with a new version when they are open", async () => {
    const shop = fakeSession();
    expect(await hover(shop)).toMatchObject({ version: 1, text: "one\n", language: "fake" });
    shop.write("a.fake", "one more\n");
    expect(await hover(shop)).toMatchObject({ version: 2, text: "one more\n" });
    expect((await hover(shop)).version).toBe(2);
    expect(startsOf(shop)).toHaveLength(1);
  });

  test("are told as events when nobody has asked for them", async () => {
    const shop = fakeSession();
    await hover(shop);
    shop.write("new.fake", "x");
    shop.write("other.txt", "x");
    expect((await hover(shop)).told).toEqual(["1 new.fake"]);
    shop.write("new.fake", "longer");
    expect((await hover(shop)).told).toEqual(["1 new.fake", "2 new.fake"]);
    rmSync(shop.path("new.fake"));
    expect((await hover(shop)).told).toEqual(["1 new.fake", "2 new.fake", "3 new.fake"]);
  });

  test("are closed when they are gone", async () => {
    const shop = fakeSession([], {}, { "a.fake": "one\n", "b.fake": "one\n" });
    await hover(shop, { path: "b.fake" });
    expect(await shop.ok("lsp_references", place)).toStartWith("2 in 2 files:");
    rmSync(shop.path("b.fake"));
    expect(await shop.ok("lsp_references", place)).toStartWith("1 in 1 file:");
  });
});

describe("diagnostics", () => {
  const bad = "a.fake:1:4: error: bad\n  | 😀 BAD";

  test.each([[[]], [["unversioned"]], [["slow"]], [["pull"]], [["twice", "unversioned"]], [["twice"]]])(
    "are of the present content, however the server tells them: %j",
    async (behaviour) => {
      const shop = fakeSession(behaviour, {}, { "a.fake": "😀  BAD\n" });
      const now = () => shop.ok("lsp_diagnostics", { path: "a.fake" });
      expect(await now()).toBe(bad.replace("😀 BAD", "😀  BAD"));
      shop.write("a.fake", "fine\n");
      expect(await now()).toBe("No problems in a.fake");
      expect(await now()).toBe("No problems in a.fake");
      shop.write("a.fake", "BAD\n");
      expect(await now()).toBe("a.fake:1:1: error: bad\n  | BAD");
    },
  );

  test("follow a change in another file", async () => {
    const shop = fakeSession([], {}, { "a.fake": "use other\n", "other.fake": "fine" });
    const now = () => shop.ok("lsp_diagnostics", { path: "a.fake" });
    expect(await now()).toBe("No problems in a.fake");
    shop.write("other.fake", "BAD");
    expect(await now()).toContain("the other is bad");
  });

  test("of a folder are those of its files", async () => {
    const shop = fakeSession([], {}, { "a.fake": "BAD\n", "sub/b.fake": "\nBAD\n", "c.txt": "BAD" });
    expect(await shop.ok("lsp_diagnostics", { path: "." })).toBe(
      "a.fake:1:1: error: bad\n  | BAD\nsub/b.fake:2:1: error: bad\n  | BAD",
    );
  });

  test("say so where the server keeps silent", async () => {
    const shop = fakeSession(["silent"], { timeout: 4 });
    expect(await shop.ok("lsp_diagnostics", { path: "a.fake" })).toBe(
      "No problems in a.fake\n[fake has said nothing of the file as it is now within 4 s: this may be out of date]",
    );
  });
});

describe("rename", () => {
  const files = { "a.fake": "\uFEFFone\r\n😀 one\r\n", "b.fake": "one two\n" };
  const args = { ...place, newName: "zwei" };

  /** With both files open in the server, which knows no others. */
  async function renaming(behaviour: string[] = []) {
    const shop = fakeSession(behaviour, {}, files);
    await hover(shop, { path: "b.fake" });
    return shop;
  }

  test.each([[[]], [["old edits"]]])("shows what would change and writes nothing: %j", async (behaviour) => {
    const shop = await renaming(behaviour);
    const text = await shop.ok("lsp_rename", args);
    expect(text).toStartWith(
      "3 places in 2 files would change; nothing was written, apply does it\n--- a.fake\n",
    );
    expect(text).toContain("+++ b.fake\n@@ -1,1 +1,1 @@\n-one two\n+zwei two");
    expect(readFileSync(shop.path("b.fake"), "utf8")).toBe("one two\n");
  });

  test("changes all files when it is told to, and nothing else in them", async () => {
    const shop = await renaming();
    expect(await shop.ok("lsp_rename", { ...args, apply: true })).toStartWith(
      "3 places in 2 files changed\n",
    );
    expect(readFileSync(shop.path("a.fake"), "utf8")).toBe("\uFEFFzwei\r\n😀 zwei\r\n");
    expect(readFileSync(shop.path("b.fake"), "utf8")).toBe("zwei two\n");
    expect((await hover(shop, { path: "b.fake" })).text).toBe("zwei two\n");
  });

  test("changes none if one of them cannot be written", async () => {
    const shop = await renaming();
    Bun.spawnSync(["chmod", "a-w", shop.path("b.fake")]);
    expect(await shop.no("lsp_rename", { ...args, apply: true })).toContain("b.fake is read-only");
    expect(readFileSync(shop.path("a.fake"), "utf8")).toContain("one");
    expect(existsSync(shop.path(".a.fake.ollie-new"))).toBe(false);
  });

  test("leaves alone what the agent has read and somebody has changed since", async () => {
    const shop = await renaming();
    await shop.ok("file_read", { path: "b.fake" });
    shop.write("b.fake", "one two three\n");
    const text = await shop.no("lsp_rename", { ...args, apply: true });
    expect(text).toContain("b.fake has changed since you read it; nothing was written");
    expect(readFileSync(shop.path("a.fake"), "utf8")).toContain("one");
  });

  test("counts as read what was read before, and only that", async () => {
    const shop = await renaming();
    await shop.ok("file_read", { path: "b.fake" });
    await shop.ok("lsp_rename", { ...args, apply: true });
    await shop.ok("file_edit", { path: "b.fake", old: "zwei two", new: "three" });
    expect(await shop.no("file_edit", { path: "a.fake", old: "zwei", new: "x", all: true })).toContain(
      "was not read yet",
    );
  });

  test.each([
    ["refuse", "fake: a keyword cannot be renamed"],
    ["move", "it would also rename a.fake, which has to be done by hand"],
    ["overlap", "the changes to a.fake overlap"],
    ["no rename", "this server cannot do that (it has no renameProvider)"],
  ])("that cannot be done says why: %s", async (behaviour, words) => {
    const shop = fakeSession([behaviour], {}, files);
    expect(await shop.no("lsp_rename", { ...args, apply: true })).toContain(words);
    expect(readFileSync(shop.path("a.fake"), "utf8")).toContain("one");
  });

  test("of nothing is an error", async () => {
    const shop = fakeSession([], {}, { "a.fake": "  one\n" });
    expect(await shop.no("lsp_rename", { path: "a.fake", line: 1, column: 1, newName: "x" })).toContain(
      "nothing at a.fake:1:1 can be renamed to x",
    );
  });
});

describe("a language server", () => {
  test("is started once for a project, and kept between calls", async () => {
    const shop = fakeSession();
    await Promise.all([hover(shop), hover(shop), shop.ok("lsp_symbols", { path: "a.fake" })]);
    await hover(shop);
    expect(startsOf(shop)).toHaveLength(1);
    expect(runs(startsOf(shop)[0]!)).toBe(true);
  });

  test("has the nearest marker's folder as its root, each project its own", async () => {
    const files = { "one/fake.root": "", "one/deep/a.fake": "x", "two/fake.root": "", "two/a.fake": "x" };
    const shop = fakeSession([], { roots: ["fake.root"] }, files);
    const root = async (path: string) => (await hover(shop, { path })).answers.root;
    expect(await root("one/deep/a.fake")).toBe(pathToFileURL(shop.path("one")).href);
    expect(await root("two/a.fake")).toBe(pathToFileURL(shop.path("two")).href);
  });

  test("gets its options and settings, with variables filled in", async () => {
    const options = { cache: "{TMPDIR}/x", list: ["{HOME}"], other: 1 };
    const shop = fakeSession(["asks"], { options, settings: { fake: { inner: { on: true } } } });
    await hover(shop);
    const { answers } = await hover(shop);
    expect(answers.options).toEqual({ cache: `${shop.ctx.tmp}/tmp/x`, list: [process.env.HOME], other: 1 });
    expect(answers["workspace/configuration"]).toEqual([{ on: true }, null]);
  });

  test("gets an answer to everything that it asks of its client", async () => {
    const shop = fakeSession(["asks"]);
    await hover(shop);
    const { answers } = await hover(shop);
    expect(answers).toMatchObject({
      "client/registerCapability": null,
      "window/workDoneProgress/create": null,
      "workspace/applyEdit": { applied: false },
      "workspace/workspaceFolders": [{ name: "work" }],
      "window/showMessageRequest": null,
      "workspace/semanticTokens/refresh": null,
      "fake/unheardOf": "there is no fake/unheardOf here",
    });
  });

  test("is waited for while it makes its index", async () => {
    const shop = fakeSession(["busy"]);
    expect(await shop.ok("lsp_references", place)).toBe("1 in 1 file:\na.fake:1:1: one");
    expect((await hover(shop)).told).toContain("indexed");
  });

  test("may write as much to stderr as it likes", async () => {
    expect((await hover(fakeSession(["flood"]))).version).toBe(1);
  });

  test("is asked again when its answer was overtaken", async () => {
    expect((await hover(fakeSession(["overtaken"]))).version).toBe(1);
  });

  test("that dies in a call is started again, once, and the call says so", async () => {
    const shop = fakeSession(["die"]);
    const { version, notes } = await hover(shop);
    expect(version).toBe(1);
    expect(notes).toEqual(["[fake had ended (exit 9; it wrote: fatal: out of ideas) and was started again]"]);
    expect((await hover(shop)).notes).toEqual([]);
    expect(startsOf(shop)).toHaveLength(2);
  });

  test("that died between calls likewise", async () => {
    const shop = fakeSession();
    await hover(shop);
    const [pid] = startsOf(shop);
    process.kill(pid!, "SIGKILL");
    await until("it is gone", () => !runs(pid!));
    expect((await hover(shop)).notes).toEqual(["[fake had ended (killed by SIGKILL) and was started again]"]);
  });

  test("that dies again and again fails the call", async () => {
    const shop = fakeSession(["die always"]);
    expect(await shop.no("lsp_hover", { ...place })).toContain(
      "fake has ended twice in this call, the last time: exit 9; it wrote: fatal: out of ideas",
    );
    expect(startsOf(shop)).toHaveLength(2);
  });

  test("that does not speak the protocol is started again", async () => {
    const { notes } = await hover(fakeSession(["garbage"]));
    expect(notes[0]).toContain("fake had ended (it does not speak the protocol: ");
  });

  test("that hangs is ended and started again, once", async () => {
    const shop = fakeSession(["hang"], { timeout: 4 });
    const { notes } = await hover(shop);
    expect(notes).toEqual([
      "[fake had ended (it hung: nothing came from it for 4 s after textDocument/hover) and was started again]",
    ]);
    expect(runs(startsOf(shop)[0]!)).toBe(false);
    shop.write("behaviour", "hang always");
    expect(await shop.no("lsp_hover", { ...place })).toContain(
      "fake has ended twice in this call, the last time: it hung",
    );
  });

  test("that does not come up says what it wrote, and how to install it", async () => {
    expect(await fakeSession(["no start"]).no("lsp_hover", { ...place })).toMatch(
      /fake could not be started in \S+: exit 7; it wrote: there is no toolchain \(to install it: buy one\)/,
    );
    expect(await fakeSession(["hang at start"], { timeout: 0.5 }).no("lsp_hover", { ...place })).toContain(
      "it hung: nothing came from it for 0.5 s after initialize",
    );
  });

  test("that is not there is named, with how to install it", async () => {
    const shop = fakeSession([], { command: ["no-such-server"] });
    expect(await shop.no("lsp_hover", { ...place })).toContain(
      "the language server for .fake files is not on PATH: no-such-server. To install it: buy one",
    );
    shop.write("a.unheard", "x");
    expect(await shop.no("lsp_hover", { path: "a.unheard", line: 1, column: 1 })).toContain(
      "no language server is known for .unheard files",
    );
  });

  test("is not asked about what is no text", async () => {
    const shop = fakeSession();
    shop.write("a.fake", "a\0b");
    expect(await shop.no("lsp_symbols", { path: "a.fake" })).toContain("a.fake is a binary file");
  });

  test("ends with the session", async () => {
    const shop = fakeSession();
    await hover(shop);
    const [pid] = startsOf(shop);
    await shop.ctx.services!.close();
    expect(runs(pid!)).toBe(false);
  });

  test("ends when nobody has asked for OLLIE_LSP_IDLE seconds", async () => {
    const shop = fakeSession();
    shop.ctx.env.OLLIE_LSP_IDLE = "0.3";
    await hover(shop);
    const [pid] = startsOf(shop);
    await until("it is gone", () => !runs(pid!));
  });
});

describe("the table of servers", () => {
  test("that makes no sense is refused with its name", async () => {
    const shop = session();
    shop.ctx.env.OLLIE_LSP = join(shop.dir, "mine.json");
    shop.write("a.fake", "x");
    const ask = () => shop.no("lsp_symbols", { path: "a.fake" });
    expect(await ask()).toContain("mine.json cannot be used: ENOENT");
    writeFileSync(shop.ctx.env.OLLIE_LSP, "[]");
    expect(await ask()).toContain("it is no JSON object");
    writeFileSync(shop.ctx.env.OLLIE_LSP, '{"x": {"command": "x"}}');
    expect(await ask()).toContain("x.command must be a list of words");
  });

  test("can change a shipped server, or take it out", async () => {
    const shop = session();
    shop.ctx.env.OLLIE_LSP = join(shop.dir, "mine.json");
    shop.write("a.go", "x");
    writeFileSync(shop.ctx.env.OLLIE_LSP, '{"gopls": {"command": ["my-gopls"]}}');
    expect(await shop.no("lsp_symbols", { path: "a.go" })).toContain("not on PATH: my-gopls.");
    writeFileSync(shop.ctx.env.OLLIE_LSP, '{"gopls": null}');
    expect(await shop.no("lsp_symbols", { path: "a.go" })).toContain("no language server is known for .go");
  });
});
