import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { expandTemplates } from "../../src/sandbox/templates.ts";

const values: Record<string, string> = {
  HOME: "/home/you",
  CWD: "/srv/a:b",
  TOOLS_PATH: "/a:/b::/c",
  EMPTY: "",
};
const expand = (text: string) => expandTemplates(text, (name) => values[name]);

describe("templates", () => {
  test.each([
    ["/etc", ["/etc"]],
    ["~", ["/home/you"]],
    ["~/.cache", ["/home/you/.cache"]],
    ["{HOME}/.cache", ["/home/you/.cache"]],
    ["/x/~/y", ["/x/~/y"]],
    ["{CWD}", ["/srv/a:b"]],
    ["{TOOLS_PATH}", ["/a", "/b", "/c"]],
    ["{TOOLS_PATH}/lib", ["/a/lib", "/b/lib", "/c/lib"]],
  ])("%s", (text, paths) => {
    expect(expand(text)).toEqual({ paths });
  });

  test.each(["{NOT_SET}", "/x/{EMPTY}/y", "{HOME}/{NOT_SET}"])("%s stands for nothing", (text) => {
    expect(expand(text).paths).toEqual([]);
    expect(expand(text).unset).toMatch(/^(NOT_SET|EMPTY)$/);
  });

  test("never hold keys of the server", () => {
    expect(expandTemplates("/x/{OLLIE_OPENAI_KEY}", () => "sk-1").paths).toEqual([]);
  });

  test("a text without braces and tilde is itself, and values are not looked through again", () => {
    fc.assert(
      fc.property(fc.string(), fc.string({ minLength: 1 }), (text, value) => {
        const plain = `/${text.replace(/[{}]/g, "")}`;
        expect(expandTemplates(plain, () => undefined).paths).toEqual([plain]);
        expect(expandTemplates("{A}{B}", () => value).paths).toEqual([value + value]);
      }),
    );
  });
});
