/** Asking with a window: kdialog or zenity. What is not clearly a permission is none. */
import type { Answer, Question } from "../../../elevate/question.ts";
import { type Asker, wording } from "./asker.ts";

const title = "ollie";
const once = "Allow once";
const session = "Allow for this session";

/**
 * Both programs take their texts for markup and for strings with escapes in them: so whatever is more than a letter, digit or blank is
 * written as a character reference.
 */
function markup(question: Question): string {
  return wording(question)
    .map((line) => line.replace(/[^\p{L}\p{N} .,:/-]/gu, (character) => `&#${character.codePointAt(0)};`))
    .join("<br/>");
}

export const kdialog: Asker = {
  name: "kdialog",
  async ask(question, signal) {
    const text = `<qt>${markup(question)}</qt>`;
    if (question.kind === "password")
      return password(await show(["kdialog", "--title", title, "--password", text], signal));
    // A menu prints what was chosen. The status of a yes-no window could be that of an error.
    const choices = ["deny", "Deny", "once", once, "session", session];
    const { status, printed } = await show(["kdialog", "--title", title, "--menu", text, ...choices], signal);
    const chosen = printed.toString().trim();
    if (status === 0 && (chosen === "once" || chosen === "session"))
      return { decision: "allow", scope: chosen };
    return denied(status);
  },
};

export const zenity: Asker = {
  name: "zenity",
  async ask(question, signal) {
    const text = markup(question).replaceAll("<br/>", "&#10;");
    const about = ["--title", title, "--text", text];
    if (question.kind === "password")
      return password(await show(["zenity", "--entry", "--hide-text", ...about], signal));
    const buttons = ["--ok-label", once, "--extra-button", session, "--cancel-label", "Deny"];
    const { status, printed } = await show(["zenity", "--question", ...about, ...buttons], signal);
    if (printed.toString().trim() === session) return { decision: "allow", scope: "session" };
    return status === 0 ? { decision: "allow", scope: "once" } : denied(status);
  },
};

/** Both end with 1 where the person says no or closes the window. */
function denied(status: number | undefined): Answer | undefined {
  return status === 0 || status === 1 ? { decision: "deny", reason: "" } : undefined;
}

function password({ status, printed }: Shown): Answer | undefined {
  if (status !== 0) return denied(status);
  const end = printed.at(-1) === 10 ? -1 : undefined;
  return { decision: "password", password: printed.subarray(0, end) };
}

interface Shown {
  /** Undefined: it could not be started, or was ended. */
  status?: number;
  printed: Buffer;
}

async function show(argv: string[], signal: AbortSignal): Promise<Shown> {
  try {
    // Without it a child gets what this process was started with, keys included.
    const child = Bun.spawn(argv, {
      env: process.env,
      stdin: "ignore",
      stdout: "pipe",
      stderr: "ignore",
      signal,
    });
    const printed = Buffer.from(await new Response(child.stdout).arrayBuffer());
    await child.exited;
    return { status: child.exitCode ?? undefined, printed };
  } catch {
    return { printed: Buffer.alloc(0) };
  }
}
