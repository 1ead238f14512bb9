/**
 * Documents whose examples are run. Two kinds of code block count, and one shell in an empty home goes through those of a document
 * from top to bottom:
 *
 * - ```` ```console ````: lines that begin with `$ ` are commands, `> ` goes on with one, and what follows is what it prints (stdout and
 *   stderr as they come). A line `…` stands for any lines.
 * - ```` ```LANGUAGE file=PATH ````: the text of that file, which is written there; executable if it begins with `#!`.
 *
 * Times, process ids and what else differs from run to run is made alike on both sides before they are compared.
 */
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { Home } from "../e2e/harness.ts";
import { type Block, codeBlocks } from "./markdown.ts";

/** The documents whose examples are run. */
export const runDocuments = [
  "README.md",
  "doc/USAGE.md",
  "doc/NAMESPACE.md",
  "doc/CONFIGURATION.md",
  "doc/WRITING_TOOLS.md",
  "doc/ELEVATION.md",
  "doc/SANDBOX.md",
  "doc/SECURITY.md",
];

/** Milliseconds for one document. */
const limit = 120_000;
/** ASCII "record separator": no program here prints one. */
const separator = "\x1e";

export interface Step {
  /** As it stands in the document. */
  command: string;
  expected: string;
  line: number;
}

interface File {
  path: string;
  text: string;
}

/** The commands and files of a document, in order. */
export function parseDocument(markdown: string): (Step | File)[] {
  return codeBlocks(markdown).flatMap((block): (Step | File)[] => {
    const path = /\bfile=(\S+)/.exec(block.info)?.[1];
    if (path !== undefined) return [{ path, text: block.text }];
    return block.info === "console" ? parseTranscript(block) : [];
  });
}

function parseTranscript(block: Block): Step[] {
  const steps: Step[] = [];
  let inCommand = false;
  for (const [index, line] of block.text.split("\n").slice(0, -1).entries()) {
    const step = steps.at(-1);
    if (line.startsWith("$ ")) {
      steps.push({ command: line.slice(2), expected: "", line: block.line + 1 + index });
      inCommand = true;
    } else if (!step) throw new Error(`line ${block.line + 1 + index}: output before the first command`);
    else if (inCommand && line.startsWith("> ")) step.command += `\n${line.slice(2)}`;
    else {
      step.expected += `${line}\n`;
      inCommand = false;
    }
  }
  return steps;
}

/**
 * Goes through a document; resolves to what each of its commands printed.
 * @param within words that have the shell started somewhere else, from which other hosts can be reached
 */
export async function play(
  document: readonly (Step | File)[],
  within: (argv: string[], cwd: string) => string[] = (argv) => argv,
): Promise<string[]> {
  const home = new Home();
  // The shell stands in the project's folder, where the reader is taken to be.
  const project = join(home.home, "project");
  mkdirSync(project);
  try {
    const script = join(home.folder, "script");
    writeFileSync(script, `exec 2>&1\n${document.map((part, i) => shellLines(part, i, home)).join("")}`);
    // Into a file, not a pipe: what a command leaves running would hold that open.
    const output = join(home.folder, "output");
    const shell = Bun.spawn(within(["sh", script], project), {
      cwd: project,
      env: home.env,
      stdin: "ignore",
      stdout: Bun.file(output),
      stderr: "ignore",
    });
    const timer = setTimeout(() => shell.kill("SIGKILL"), limit);
    await shell.exited;
    clearTimeout(timer);
    return readFileSync(output, "utf8")
      .split(separator)
      .slice(0, -1)
      .map((text) =>
        text.replaceAll(home.home, "/home/you").replaceAll(home.env.XDG_RUNTIME_DIR!, "/run/user/1000"),
      );
  } finally {
    // Every server that the document has started, also where it did not get as far as ending it.
    const running = [
      ...new Bun.Glob("**/olliesrv.pid").scanSync({ cwd: home.home, dot: true, absolute: true }),
    ];
    for (const file of running) await home.olliesrv("stop", "--state", dirname(file));
    home.remove();
  }
}

function shellLines(part: Step | File, index: number, home: Home): string {
  if ("command" in part) return `${part.command}\nprintf '\\036'\n`;
  const draft = join(home.folder, `file-${index}`);
  writeFileSync(draft, part.text, { mode: part.text.startsWith("#!") ? 0o755 : 0o644 });
  return `mkdir -p "$(dirname ${part.path})" && cp -p ${draft} ${part.path}\n`;
}

const alike: [RegExp, string][] = [
  [/\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z/g, "TIME"],
  [/\d{4}-\d\d-\d\d \d\d:\d\d:\d\d/g, "TIME"],
  [/\b(process|pid)(":)? +\d+/g, "$1$2 N"],
  [/\bid=\w+/g, "id=ID"],
  [/\/output\/[\w.-]+\.txt/g, "/output/ID.txt"],
  [/\b[0-9a-hj-km-np-tv-z]{14}\b/g, "ID"],
  // Other hosts: ids of sessions, hashes, fingerprints, sizes.
  [/\b[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\b/g, "ID"],
  [/\b[0-9a-f]{64}\b/g, "HASH"],
  [/SHA256:[\w+/]+=*/g, "SHA256:HASH"],
  [/^(bootstrap +)[0-9a-f]{12}\b/gm, "$1HASH"],
  [/\bkernel \S+/g, "kernel N"],
  [/\b\d+(\.\d+)? (kB|MB|bytes)\b/g, "N $2"],
  [/\b\d+\.\d+\.\d+ \(([0-9a-f]+(-dirty)?|unknown)\)/g, "VERSION"],
  // How many tokens a request has depends on the tools that the host has.
  [/\bin=\d+/g, "in=N"],
  [/\b\d+ \/ (\d+) \(\d+%\)/g, "N / $1 (P%)"],
  [/\bafter \d+\.\d s\b/g, "after N s"],
];

/** The text with what no two runs have in common taken out. */
export function normalise(text: string): string {
  return alike.reduce((done, [pattern, by]) => done.replace(pattern, by), text);
}

/** Whether `actual` is what a document says; both normalised. */
export function agrees(actual: string, expected: string): boolean {
  const lines = expected
    .split("\n")
    .map((line) => (line === "…" ? "(?:.*\n)*?" : `${RegExp.escape(line)}\n`));
  return new RegExp(`^${lines.join("")}$`).test(`${actual}\n`);
}
