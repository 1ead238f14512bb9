/** Links between documents lead somewhere. */
import { describe, expect, test } from "bun:test";
import { existsSync, readFileSync, statSync } from "node:fs";
import { dirname, join } from "node:path";
import { documents, prose, read, top } from "./markdown.ts";

/** As GitHub makes them. */
function anchors(markdown: string): string[] {
  return [...prose(markdown).matchAll(/^#+ (.+)$/gm)].map(([, heading]) =>
    heading!
      .toLowerCase()
      .replace(/[^\p{L}\p{N}_ -]/gu, "")
      .replaceAll(" ", "-"),
  );
}

/** Why a link of `document` leads nowhere; undefined if it leads somewhere. */
function broken(document: string, link: string): string | undefined {
  const [path, anchor] = link.split("#") as [string, string?];
  const file =
    path === "" ? join(top, document) : join(dirname(join(top, document)), decodeURIComponent(path));
  if (!existsSync(file)) return `${link}: there is no such file`;
  if (anchor === undefined || !statSync(file).isFile() || !file.endsWith(".md")) return undefined;
  return anchors(readFileSync(file, "utf8")).includes(anchor)
    ? undefined
    : `${link}: there is no such heading`;
}

describe.each(documents())("%s", (document) => {
  test("every relative link resolves", () => {
    const links = [...prose(read(document)).matchAll(/\]\(([^)\s]+)\)/g)].map((match) => match[1]!);
    const relative = links.filter((link) => !/^[a-z]+:/.test(link));
    expect(relative.flatMap((link) => broken(document, link) ?? [])).toEqual([]);
  });
});
