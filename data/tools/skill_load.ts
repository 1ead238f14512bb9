#!/usr/bin/env ollie-run
/** Shows a skill: instructions that the user keeps for a kind of task, and the files that belong to them. */
import { join } from "node:path";
import { print, readArgs, skills } from "ollie:tool";

/** Bytes of a skill that are shown: less than a tool's result may have. */
const mostOutput = 12_000;
/** Files that are listed. */
const mostFiles = 100;

const { name } = await readArgs<{ name?: string }>();
const all = await skills();
const skill = all.find((one) => one.name === name) ?? all.find((one) => same(one.name, name ?? ""));
if (all.length === 0) throw new Error("there are no skills on this host");
if (skill) show();
else if (name) throw new Error(`there is no skill ${JSON.stringify(name)}. There are:\n${index()}`);
else print(index());

function index(): string {
  return all.map((one) => `- ${one.name}${one.description ? `: ${one.description}` : ""}`).join("\n");
}

/** As weak models write names. */
function same(one: string, other: string): boolean {
  const plain = (text: string) =>
    text
      .toLowerCase()
      .replace(/[\s_]+/g, "-")
      .replace(/\.md$/, "");
  return plain(one) === plain(other);
}

function show(): void {
  const { file, folder, body } = skill!;
  print(`# Skill ${skill!.name} (${file})\n`);
  const bytes = Buffer.from(body);
  if (bytes.length <= mostOutput) print(body);
  else {
    const end = bytes.lastIndexOf(10, mostOutput);
    print(bytes.subarray(0, end > 0 ? end : mostOutput).toString("utf8"));
    print(`[cut here, at ${end} of ${bytes.length} bytes; file_read ${file} shows the rest]`);
  }
  if (folder) listFiles(folder);
}

function listFiles(folder: string): void {
  // Without dot files, and without following links to folders.
  const files = [...new Bun.Glob("**/*").scanSync({ cwd: folder })]
    .filter((path) => join(folder, path) !== skill!.file && !/(?:^|\/)node_modules\//.test(path))
    .sort();
  if (files.length === 0) return;
  print(`\nFiles of this skill, in ${folder}:`);
  for (const path of files.slice(0, mostFiles)) print(`- ${path}`);
  if (files.length > mostFiles) print(`[${files.length - mostFiles} more]`);
}
