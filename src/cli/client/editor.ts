/** A line editor that stays open, above whose line others can write. */
import { clearScreenDown, createInterface, cursorTo, type Interface, moveCursor } from "node:readline";
import type { History } from "./history.ts";
import { Interrupted, type Lines } from "./lines.ts";

export class Editor implements Lines {
  readonly #editor: Interface;
  /** Lines that came before they were asked for. */
  readonly #early: string[] = [];
  #waiting?: PromiseWithResolvers<string | undefined>;
  #closed = false;

  constructor(history: History) {
    this.#editor = createInterface({
      input: process.stdin,
      output: process.stdout,
      terminal: true,
      history: [...history.lines],
      historySize: history.lines.length + 1000,
      removeHistoryDuplicates: true,
    });
    this.#editor.on("line", (line) => {
      if (line !== ".") history.add(line);
      if (!this.#waiting) this.#early.push(line);
      this.#settle(({ resolve }) => resolve(line));
    });
    this.#editor.on("SIGINT", () => {
      this.#editor.write(null, { ctrl: true, name: "e" });
      this.#editor.write(null, { ctrl: true, name: "u" });
      process.stdout.write("\n");
      this.#settle(({ reject }) => reject(new Interrupted()));
    });
    this.#editor.on("close", () => {
      this.#closed = true;
      this.#settle(({ resolve }) => resolve(undefined));
    });
  }

  async line(prompt: string): Promise<string | undefined> {
    const early = this.#early.shift();
    if (early !== undefined || this.#closed) return early;
    this.#waiting = Promise.withResolvers();
    const { promise } = this.#waiting;
    this.#editor.setPrompt(prompt);
    this.#editor.prompt();
    return promise;
  }

  /** Writes whole lines above the one that is being edited. */
  above(text: string | Uint8Array): void {
    if (!this.#waiting) {
      process.stdout.write(text);
      return;
    }
    moveCursor(process.stdout, 0, -this.#editor.getCursorPos().rows);
    cursorTo(process.stdout, 0);
    clearScreenDown(process.stdout);
    process.stdout.write(text);
    // The editor would look for the beginning of its line as far up as it left it.
    (this.#editor as Interface & { prevRows: number }).prevRows = 0;
    this.#editor.prompt(true);
  }

  close(): void {
    this.#editor.close();
  }

  #settle(how: (waiting: PromiseWithResolvers<string | undefined>) => void): void {
    const waiting = this.#waiting;
    this.#waiting = undefined;
    if (waiting) how(waiting);
  }
}
