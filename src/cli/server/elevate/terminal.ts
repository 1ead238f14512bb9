/** Asking on the terminal that the command was started in. */
import type { Answer, Question } from "../../../elevate/question.ts";
import { type Asker, wording } from "./asker.ts";

export class TerminalAsker implements Asker {
  readonly name = "terminal";
  /** Gets what is typed while somebody is asked; what is typed before a question was there answers none. */
  #typed?: (bytes: Uint8Array) => void;

  constructor() {
    process.stdin.on("data", (bytes: Uint8Array) => this.#typed?.(bytes));
  }

  async ask(question: Question, signal: AbortSignal): Promise<Answer | undefined> {
    const [command, ...above] = wording(question).reverse();
    process.stdout.write(`\n${above.reverse().join("\n")}\n  ${command}\n`);
    try {
      return question.kind === "password" ? await this.#password(signal) : await this.#approval(signal);
    } catch {
      process.stdout.write("\n(settled elsewhere)\n");
      return undefined;
    }
  }

  async #approval(signal: AbortSignal): Promise<Answer> {
    for (;;) {
      process.stdout.write("Allow it? y: once, s: for this session, n [reason]: no > ");
      const [word = "", ...reason] = (await this.#line(signal)).toString().trim().split(/\s+/);
      if (/^(y|yes)$/i.test(word)) return { decision: "allow", scope: "once" };
      if (/^(s|session)$/i.test(word)) return { decision: "allow", scope: "session" };
      if (/^(n|no)$/i.test(word)) return { decision: "deny", reason: reason.join(" ") };
    }
  }

  async #password(signal: AbortSignal): Promise<Answer> {
    process.stdout.write("Password, not shown (empty: deny) > ");
    process.stdin.setRawMode(true);
    try {
      const password = await this.#line(signal);
      process.stdout.write("\n");
      return password.length > 0
        ? { decision: "password", password }
        : { decision: "deny", reason: "no password was given" };
    } finally {
      process.stdin.setRawMode(false);
    }
  }

  /** Without its end. In raw mode the keys that a terminal would take care of come as bytes. */
  async #line(signal: AbortSignal): Promise<Buffer> {
    const line: number[] = [];
    try {
      return await new Promise((resolve, reject) => {
        signal.throwIfAborted();
        signal.addEventListener("abort", () => reject(signal.reason), { once: true });
        this.#typed = (bytes) => {
          for (const byte of bytes) {
            if (byte === 10 || byte === 13) resolve(Buffer.from(line));
            else if (byte === 3 || byte === 4) resolve(Buffer.alloc(0));
            else if (byte === 0x7f || byte === 8) line.pop();
            else if (byte === 0x15) line.length = 0;
            else line.push(byte);
          }
        };
      });
    } finally {
      this.#typed = undefined;
      line.fill(0);
    }
  }
}
