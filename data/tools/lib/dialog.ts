/** For the programs of gui_dialog: one question to the user, in a window that another program shows. */
import { call, print, readArgs } from "ollie:tool";

export interface Question {
  text: string;
  kind: "message" | "yesno" | "input" | "choice";
  choices: string[];
  /** Says who asks: what an agent writes must not pass for a window of another program. */
  title: string;
}

/**
 * @param argv of a program that ends with 0 for yes and 1 for no or cancel, and prints the text or choice. The choices are on its stdin
 *   too, a line each.
 */
export async function askUser(argv: (question: Question) => string[]): Promise<void> {
  const args = await readArgs<{ text: string; kind: Question["kind"]; choices?: string[] }>();
  const question = {
    ...args,
    // One line each, as they are printed.
    choices: (args.choices ?? []).map((choice) => choice.replace(/\s+/g, " ").trim()).filter(Boolean),
    title: `ollie: ${call.session}, ${call.agent}`,
  };
  if (question.kind === "choice" && question.choices.length === 0)
    throw new Error('"choices" is missing: what is there to choose from?');
  if (!process.env.DISPLAY && !process.env.WAYLAND_DISPLAY)
    throw new Error("there is no desktop here: neither DISPLAY nor WAYLAND_DISPLAY is set");
  const window = Bun.spawn(argv(question), {
    stdin: Buffer.from(question.choices.map((choice) => `${choice}\n`).join("")),
    stdout: "pipe",
    stderr: "pipe",
  });
  const [output, words, status] = await Promise.all([
    window.stdout.text(),
    window.stderr.text(),
    window.exited,
  ]);
  // A toolkit that finds no screen ends with 1 as well.
  if (status > 1 || /cannot open display|could not connect to display/i.test(words))
    throw new Error(`${argv(question)[0]} failed (exit ${status}): ${words.trim()}`);
  print(answer(question, status === 0, output.replace(/\n$/, "")));
}

function answer({ kind }: Question, accepted: boolean, output: string): string {
  if (kind === "message") return "The user has closed the message.";
  if (kind === "yesno") return `The user answers: ${accepted ? "yes" : "no"}`;
  if (!accepted) return "The user has closed the window without an answer.";
  if (kind === "choice" && output === "") return "The user has chosen nothing.";
  return `The user answers: ${output}`;
}
