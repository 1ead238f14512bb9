/** The lines typed at `readline`, kept in a file: one a line, the newest last. */
import { appendFileSync, mkdirSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { dirname } from "node:path";

/** Lines that are offered. The file may grow to twice as many before it is cut. */
const kept = 1000;

export class History {
  /** The newest first, as node:readline wants them. */
  readonly lines: string[];

  constructor(private readonly file: string) {
    const all = read(file);
    if (all.length > 2 * kept) rewrite(file, all.slice(-kept));
    this.lines = all.slice(-kept).reverse();
  }

  /** Several prompts may add to one file. That it cannot be written must not cost anybody a prompt. */
  add(line: string): void {
    if (line.trim() === "" || line === this.lines[0]) return;
    this.lines.unshift(line);
    try {
      mkdirSync(dirname(this.file), { recursive: true, mode: 0o700 });
      appendFileSync(this.file, `${line}\n`, { mode: 0o600 });
    } catch {}
  }
}

function read(file: string): string[] {
  try {
    return readFileSync(file, "utf8")
      .split("\n")
      .filter((line) => line !== "");
  } catch {
    return [];
  }
}

function rewrite(file: string, lines: string[]): void {
  try {
    writeFileSync(`${file}.${process.pid}`, lines.map((line) => `${line}\n`).join(""), { mode: 0o600 });
    renameSync(`${file}.${process.pid}`, file);
  } catch {}
}
