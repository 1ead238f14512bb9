/** doc/ARCHITECTURE.md names rooms and files that there are. */
import { expect, test } from "bun:test";
import { readdirSync } from "node:fs";
import { join } from "node:path";
import { codeBlocks, codeSpans, prose, read, section, top } from "./markdown.ts";

const document = read("doc/ARCHITECTURE.md");
const files = ["build.ts", ...new Bun.Glob("{actors,src,data,test}/**").scanSync({ cwd: top })];

test("every file that it names exists", () => {
  const named = codeSpans(prose(document)).filter((span) => /^[\w./-]+\.(ts|yaml)$/.test(span));
  expect(named.length).toBeGreaterThan(20);
  const missing = named.filter((path) => !files.some((file) => `/${file}`.endsWith(`/${path}`)));
  expect(missing).toEqual([]);
});

test("every room is in its list", () => {
  const list = codeBlocks(section(document, "Rooms"))[0]!.text;
  const listed = [...list.matchAll(/^ {2}(\w+)\//gm)].map((match) => match[1]!);
  const rooms = readdirSync(join(top, "src"), { withFileTypes: true }).filter((entry) => entry.isDirectory());
  expect(listed.sort()).toEqual(rooms.map(({ name }) => name).sort());
});
