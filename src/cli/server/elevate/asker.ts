/** A way to put a question to the person at this machine. */
import type { Answer, Question } from "../../../elevate/question.ts";
import { visible } from "../../../elevate/visible.ts";

export interface Asker {
  /** For `--with`. */
  readonly name: string;
  /**
   * Resolves with what was answered; undefined where the person could not be asked. Aborting `signal` takes the question from the screen:
   * it has been settled elsewhere.
   */
  ask(question: Question, signal: AbortSignal): Promise<Answer | undefined>;
}

/** The question in words, a line an entry, harmless to look at; the command is the last one. */
export function wording({ kind, again, session, agent, tool, command, cwd, host }: Question): string[] {
  const who = `Agent ${visible(agent)} of session ${visible(session)}`;
  const where = `on ${visible(host)} in ${visible(cwd)}`;
  const what =
    kind === "approval"
      ? `${who} wants to run ${visible(tool)} outside of the sandbox, ${where}:`
      : `sudo wants a password to run ${visible(tool)} as root for ${who.toLowerCase()}, ${where}:`;
  return [...(again ? ["That password was wrong."] : []), what, visible(command)];
}
