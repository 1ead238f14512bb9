import { afterAll, expect, test } from "bun:test";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { listSkills } from "../../src/config/skills.ts";

const folder = mkdtempSync(join(tmpdir(), "ollie-skills-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

function put(path: string, text: string): void {
  mkdirSync(dirname(join(folder, path)), { recursive: true });
  writeFileSync(join(folder, path), text);
}

put("one/review/SKILL.md", "---\nname: review\ndescription: How to\n  review\n---\n\n# Review\n\n---\nend\n");
put("one/windows/SKILL.md", "\uFEFF---\r\nname: crlf\r\ndescription: d\r\n---\r\nbody\r\n");
put("one/single.md", "---\ndescription: One file\n---\ntext\n");
put("one/plain.md", "Just text.\n");
put("one/broken/SKILL.md", "---\nname: [\n---\ntext");
put("one/colon/SKILL.md", "---\nname: with-colon\ndescription: Use when: asked\n---\ntext");
put("one/README.md", "About this folder");
put("one/empty/notes.txt", "");
put("two/review/SKILL.md", "---\nname: review\n---\nthe other one");

const skills = listSkills([join(folder, "missing"), join(folder, "one"), join(folder, "two")]);
const skill = (name: string) => skills.find((one) => one.name === name)!;

test("skills are folders with a SKILL.md, and single files, by the names that they give themselves", () => {
  expect(skills.map(({ name }) => name)).toEqual([
    "broken",
    "crlf",
    "plain",
    "review",
    "single",
    "with-colon",
  ]);
  expect(skill("review")).toEqual({
    name: "review",
    description: "How to review",
    file: join(folder, "one/review/SKILL.md"),
    folder: join(folder, "one/review"),
    body: "# Review\n\n---\nend",
  });
  expect(skill("single").folder).toBeUndefined();
});

test("the body is what stands behind the front matter", () => {
  expect(["crlf", "single", "plain", "broken"].map((name) => skill(name).body)).toEqual([
    "body",
    "text",
    "Just text.",
    "text",
  ]);
});

test("a colon in the description is taken as it stands", () => {
  expect(skill("with-colon").description).toBe("Use when: asked");
});

test("a broken front matter is told in place of the description", () => {
  expect(skill("broken").description).toStartWith(`${folder}/one/broken/SKILL.md: `);
});
