/** The session's plan: a text in which the lines `- [ ] text` and `- [x] text` are tasks. */
import { closeSync, openSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { call, nine, print } from "ollie:tool";

const file = `session/${call.session}/plan`;
const task = /^\s*[-*] \[([ xX])\] (.*)$/;

export interface Task {
  /** Index of its line. */
  line: number;
  done: boolean;
  text: string;
}

export function tasksOf(lines: readonly string[]): Task[] {
  return lines.flatMap((text, line) => {
    const match = task.exec(text);
    return match ? [{ line, done: match[1] !== " ", text: match[2]! }] : [];
  });
}

export function isTask(line: string): boolean {
  return task.test(line);
}

/** Gives the plan's lines to `change`, writes what it returns, and shows the tasks, numbered. */
export async function changePlan(change: (lines: string[]) => string[]): Promise<void> {
  const lines = await locked(async () => {
    const text = await nine.read(file);
    const before = text === "" ? [] : text.replace(/\n$/, "").split("\n");
    const after = change(before);
    await nine.write(file, after.map((line) => `${line}\n`).join(""));
    return after;
  });
  const tasks = tasksOf(lines);
  print(
    tasks.map(({ done, text }, i) => `${i + 1}. [${done ? "x" : " "}] ${text}`).join("\n") ||
      "The plan has no tasks.",
  );
}

/** Two agents of the session that change the plan at once take turns: they have TMPDIR in common. */
async function locked<T>(work: () => Promise<T>): Promise<T> {
  const lock = join(tmpdir(), ".plan.lock");
  for (;;) {
    try {
      closeSync(openSync(lock, "wx", 0o600));
      break;
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== "EEXIST") throw error;
      // Left behind by a tool that was killed: the work takes milliseconds.
      const made = statSync(lock, { throwIfNoEntry: false })?.mtimeMs;
      if (made !== undefined && Date.now() - made > 10_000) rmSync(lock, { force: true });
      await Bun.sleep(20);
    }
  }
  try {
    return await work();
  } finally {
    rmSync(lock, { force: true });
  }
}
