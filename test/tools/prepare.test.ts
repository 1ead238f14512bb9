import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { prepare } from "../../src/tools/prepare.ts";
import { toolWith } from "./helper.ts";

const tool = toolWith({
  type: "object",
  properties: {
    path: { type: "string" },
    text: { type: "string" },
    line: { type: "integer", minimum: 1 },
    all: { type: "boolean" },
    names: { type: "array", items: { type: "string" } },
    range: { type: "array", items: { type: "integer" } },
    where: { type: "object", properties: { row: { type: "integer" } }, required: ["row"] },
    mode: { enum: ["fast", "slow"] },
    either: { anyOf: [{ type: "string" }, { type: "integer" }] },
  },
  required: ["path"],
});
const free = toolWith({ type: "object" }, "free");

const run = (args: string, target = tool) => prepare({ id: "1", name: target.name, args }, [target]);
const argsOf = (text: string, target = tool) => {
  const prepared = run(text, target);
  return prepared.ok ? prepared.args : prepared.text;
};

describe("arguments that are right are left alone", () => {
  test("any JSON object comes through unchanged, and nothing counts as repaired", () => {
    fc.assert(
      fc.property(fc.dictionary(fc.string(), fc.jsonValue()), (args) => {
        expect(run(JSON.stringify(args), free)).toEqual({
          ok: true,
          tool: free,
          args: JSON.parse(JSON.stringify(args)),
        });
      }),
    );
  });

  test("nothing at all stands for no arguments", () => {
    expect(argsOf("", free)).toEqual({});
    expect(argsOf("null", free)).toEqual({});
  });
});

describe("what is wrong but can only mean one thing is mended, and the result says so", () => {
  const cases: [string, string, Record<string, unknown>][] = [
    ["a trailing comma", '{"path": "a", }', { path: "a" }],
    ["a trailing comma in a list", '{"path": "a", "names": ["x", "y",]}', { path: "a", names: ["x", "y"] }],
    ["single quotes", "{'path': 'a b'}", { path: "a b" }],
    ["keys without quotes", '{path: "a", line: 3}', { path: "a", line: 3 }],
    ["Python's literals", '{"path": "a", "all": True, "text": None}', { path: "a", all: true }],
    ["a line break in a string", '{"path": "a\nb\tc"}', { path: "a\nb\tc" }],
    ["a code fence", '```json\n{"path": "a"}\n```', { path: "a" }],
    ["a fence and a trailing comma", '```\n{"path": "a",}\n```', { path: "a" }],
    ["an escaped apostrophe", '{"path": "it\\\'s"}', { path: "it's" }],
    ["a string that holds the object", JSON.stringify('{"path": "a"}'), { path: "a" }],
    ["a number as a string", '{"path": "a", "line": "12"}', { path: "a", line: 12 }],
    ["a boolean as a string", '{"path": "a", "all": "True"}', { path: "a", all: true }],
    [
      "a list as a string",
      '{"path": "a", "range": "\\n[2142, 2250]\\n\\n"}',
      { path: "a", range: [2142, 2250] },
    ],
    ["an object as a string", '{"path": "a", "where": "{\\"row\\": 1}"}', { path: "a", where: { row: 1 } }],
    ["a number inside an object", '{"path": "a", "where": {"row": "1"}}', { path: "a", where: { row: 1 } }],
    ["a number for a string", '{"path": 12}', { path: "12" }],
    ["one item for a list", '{"path": "a", "names": "x"}', { path: "a", names: ["x"] }],
    ["null for what may be left out", '{"path": "a", "line": null}', { path: "a" }],
  ];
  test.each(cases)("%s", (_name, text, args) => {
    const prepared = run(text);
    expect(prepared).toMatchObject({ ok: true });
    expect(prepared.ok && prepared.args).toEqual(args);
  });

  test("a value that fits is never converted", () => {
    expect(argsOf('{"path": "12", "either": "3", "text": "[1]"}')).toEqual({
      path: "12",
      either: "3",
      text: "[1]",
    });
    expect(run('{"path": "12", "either": "3"}')).not.toHaveProperty("repaired");
  });

  test("the note names what was done", () => {
    expect(run('{"path": "a", "line": "12",}')).toMatchObject({
      repaired: "JSON syntax mended, line taken as a number",
    });
  });

  test("long strings are no trouble", () => {
    const text = `${"line with 'quotes' and \\\\ backslashes\n".repeat(100_000)}`;
    expect(argsOf(`{"path": "a", "text": "${text}",}`)).toEqual({
      path: "a",
      text: text.replaceAll("\\\\", "\\"),
    });
  });
});

describe("what was cut off or could mean two things is refused", () => {
  const cases: [string, string, RegExp][] = [
    ["cut in a string", '{"path": "src/ma', /not closed/],
    ["cut after a string", '{"path": "a", "text": "b"', /cut off/],
    ["cut after a comma", '{"path": "a",', /cut off/],
    ["cut in a nested list", '{"path": "a", "names": ["x"', /cut off/],
    ["quotes inside quotes", '{"path": "env.get("KEY", "default")"}', /unexpected/],
    ["quotes that make it look like JSON", '{"path": "echo ", "hello"}', /unexpected/],
    ["an apostrophe in single quotes", "{'path': 'it's'}", /unexpected/],
    ["two objects", '{"path": "a"}{"path": "b"}', /unexpected/],
    ["text around it", 'Sure! {"path": "a"}', /unexpected|quoted/],
    ["a Windows path", '{"path": "C:\\Users\\new"}', /backslash/],
    ["a regular expression", '{"path": "\\d+\\*"}', /backslash/],
    ["a broken unicode escape", '{"path": "\\u6수"}', /backslash/],
    ["a value without quotes", "{path: ls -la}", /not quoted/],
    ["a missing comma", '{"path": "a" "line": 2}', /unexpected/],
    ["a missing value", '{"path": }', /unexpected/],
    ["XML", "<parameter=path>a</parameter>", /unexpected/],
    ["a list", '["a"]', /an array/],
    ["plain words", '"list the files"', /a string/],
  ];
  test.each(cases)("%s", (_name, text, reason) => {
    const answer = argsOf(text);
    expect(answer).toBeString();
    expect(answer).toMatch(reason);
    expect(answer).toContain("It takes {path: string");
  });

  test("every beginning of a call's arguments", () => {
    const whole = '{"path": "src/a.ts", "names": ["x", "y"], "where": {"row": 1}, "text": "it\\n"}';
    for (let end = 1; end < whole.length; end++) expect(argsOf(whole.slice(0, end))).toBeString();
  });
});

describe("errors name the property and what was expected", () => {
  const cases: [string, string, string][] = [
    ["missing", "{}", "path is missing"],
    ["missing inside", '{"path": "a", "where": {}}', "where.row is missing"],
    ["wrong type", '{"path": "a", "line": "many"}', 'line must be integer, not "many"'],
    ["wrong type in a list", '{"path": "a", "range": [1, "x"]}', 'range.1 must be integer, not "x"'],
    ["not one of the values", '{"path": "a", "mode": "quick"}', 'mode must be "fast" | "slow", not "quick"'],
    ["none of the kinds", '{"path": "a", "either": {}}', "either must be string | integer, not {}"],
    ["out of range", '{"path": "a", "line": 0}', "line must have minimum 1, it is 0"],
    ["unknown", '{"path": "a", "ignore_case": true}', "there is no property ignore_case"],
    ["two at once", '{"line": 0}', "path is missing; line must have minimum 1"],
  ];
  test.each(cases)("%s", (_name, text, message) => {
    expect(argsOf(text)).toContain(message);
  });

  test("a property called like one of every object's is unknown too", () => {
    expect(argsOf('{"__proto__": {"path": "a"}}')).toContain("path is missing");
    expect(argsOf('{"path": "a", "constructor": 1}')).toContain("there is no property constructor");
  });

  test("a schema that allows further properties gets them", () => {
    const open = toolWith({ type: "object", properties: {}, additionalProperties: true });
    expect(argsOf('{"anything": 1}', open)).toEqual({ anything: 1 });
  });
});

describe("the tool's name", () => {
  const call = (name: string) =>
    prepare({ id: "1", name, args: "{}" }, [toolWith({ type: "object" }, "shell"), free]);

  test("may differ in case", () => {
    expect(call("SHELL")).toMatchObject({ ok: true, tool: { name: "shell" } });
  });

  test("that nothing loaded has is told, with what is loaded", () => {
    expect(call("bash")).toEqual({ ok: false, text: 'There is no tool "bash" loaded. Loaded: shell, free.' });
  });
});
