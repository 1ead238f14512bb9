import { createInterface, type Interface } from "node:readline";
import { PassThrough } from "node:stream";
import { defaultState } from "../../config/paths.ts";
import { command } from "../program.ts";
import { readIn, writeOut } from "../stdio.ts";
import type { globals } from "./connection.ts";
import { History } from "./history.ts";
import { Interrupted, type Lines, readBlock } from "./lines.ts";

const options = {
  block: { type: "boolean", short: "b", help: "several lines, ended by one that is a single dot" },
  prompt: { type: "string", short: "p", value: "TEXT", help: "shown before the first line" },
  history: { type: "string", short: "H", value: "FILE", help: "where lines typed earlier are kept" },
} as const;

export const readline = command<typeof options, typeof globals>({
  usage: "[-b] [-p TEXT] [-H FILE]",
  about:
    "Reads a line from the terminal, with editing and history, and prints it. A block is sent by a line that is a single dot or by Ctrl-D;\n" +
    "a first line that begins with one slash is a block by itself. What is typed beyond that is left for the next reader.\n" +
    "Status 1 at the end of the input, 130 after Ctrl-C. Without a terminal the lines come from stdin as they are.",
  options,
  words: [0, 0],
  async run({ values }) {
    const terminal = process.stdin.isTTY === true;
    const history = new History(values.history ?? `${defaultState(process.env)}/history`);
    const source = terminal ? new TerminalLines(history) : new PlainLines();
    try {
      const text = await (values.block
        ? readBlock(source, values.prompt ?? "")
        : source.line(values.prompt ?? ""));
      if (text === undefined) return 1;
      await writeOut(`${text}\n`);
      return 0;
    } catch (error) {
      if (error instanceof Interrupted) return 130;
      throw error;
    } finally {
      source.close();
    }
  },
});

class PlainLines implements Lines {
  /** Byte by byte: what lies behind the newline belongs to whoever reads next. */
  async line(): Promise<string | undefined> {
    const bytes: number[] = [];
    for (;;) {
      const byte = (await readIn(undefined, 1))?.[0];
      if (byte === undefined && bytes.length === 0) return undefined;
      if (byte === undefined || byte === 10) return Buffer.from(bytes).toString();
      bytes.push(byte);
    }
  }

  close(): void {}
}

/**
 * Lines edited on the terminal. The editor is fed one byte at a time and only until its line is complete, so that keys typed ahead
 * stay in the terminal for the next command.
 */
class TerminalLines implements Lines {
  readonly #keys = new PassThrough();
  readonly #editor: Interface;
  #ended?: "closed" | "interrupted";
  #line?: string;

  constructor(private readonly history: History) {
    process.stdin.setRawMode(true);
    for (const [signal, status] of [
      ["SIGTERM", 143],
      ["SIGHUP", 129],
    ] as const) {
      // The terminal must not stay raw.
      process.on(signal, () => {
        this.close();
        process.exit(status);
      });
    }
    this.#editor = createInterface({
      input: this.#keys,
      // stdout is what the caller captures.
      output: process.stderr,
      terminal: true,
      history: [...history.lines],
      historySize: history.lines.length + 1000,
      removeHistoryDuplicates: true,
    });
    this.#editor.on("line", (line) => {
      this.#line = line;
    });
    this.#editor.on("SIGINT", () => {
      this.#ended = "interrupted";
    });
    this.#editor.on("close", () => {
      this.#ended ??= "closed";
    });
  }

  async line(prompt: string): Promise<string | undefined> {
    this.#line = undefined;
    this.#editor.setPrompt(prompt);
    this.#editor.prompt();
    while (this.#line === undefined && !this.#ended) {
      const byte = await readIn(undefined, 1);
      if (!byte) this.#ended = "closed";
      else this.#keys.write(byte);
      // The stream hands the byte on in a later turn of the event loop.
      await new Promise(setImmediate);
    }
    if (this.#line === undefined) process.stderr.write("\n");
    else if (this.#line !== ".") this.history.add(this.#line);
    if (this.#ended === "interrupted") throw new Interrupted();
    return this.#line;
  }

  close(): void {
    this.#editor.close();
    process.stdin.setRawMode(false);
  }
}
