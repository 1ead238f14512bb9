/** One turn while it runs: what is held of it in memory, and the rules that need nothing else. An idle agent has none. */
import type { Verdict } from "../../actors/agent.ts";
import type { Message } from "../backends/backend.ts";
import { newId } from "../ids.ts";
import type { ProjectSurvey } from "../tools/hands.ts";
import { type AnswerWriter, nothingShown, type Shown } from "./answer.ts";
import type { Call } from "./call.ts";
import { LoopGuard } from "./guard.ts";

export class Turn {
  readonly id = newId();
  /** The history as the model gets it. */
  messages: Message[] = [];
  /** What there is to say of the project, where that was found out once for the turn. */
  project?: ProjectSurvey;
  /** The calls of the last answer. */
  calls: Call[] = [];
  /** The stream that is open. */
  answer?: AnswerWriter;
  /** Why this turn cannot go on, where the disk refused to keep a result. */
  broken?: string;
  readonly #guard = new LoopGuard();
  /** What broken tries of the present request have shown. */
  #shown = nothingShown;
  /** Requests made. */
  #steps = 0;
  #maxSteps?: number;

  /** A new request. `maxSteps` holds for it whatever becomes of the settings meanwhile: the machine's questions must not fail. */
  beginStep(maxSteps: number | undefined): void {
    this.#steps++;
    this.#maxSteps = maxSteps;
    this.#shown = nothingShown;
  }

  get first(): boolean {
    return this.#steps === 1;
  }

  /** The request that is granted beyond `maxSteps`, without tools. */
  get last(): boolean {
    return this.#maxSteps !== undefined && this.#steps > this.#maxSteps;
  }

  /** What the model is to be told with the present request. */
  note(): string | undefined {
    if (!this.last) return this.#guard.note();
    return "This is the last step of this turn: no tools are available any more. Answer with what you have, and say what is left to do.";
  }

  get shown(): Shown {
    return this.#shown;
  }

  /** The stream has broken off. What it showed counts from now on, unless that is only the beginning of what was shown before. */
  keepShown(): void {
    const { answer } = this;
    if (!answer) return;
    const { text, reasoning } = this.#shown;
    this.#shown = { text: latest(text, answer.text), reasoning: latest(reasoning, answer.reasoning) };
    answer.close();
    this.answer = undefined;
  }

  /** The answer is complete. */
  forgetShown(): void {
    this.#shown = nothingShown;
    this.answer = undefined;
  }

  /** All calls of the last answer have their results. */
  closeRound(): void {
    for (const { id, name, outcome } of this.calls)
      this.messages.push({ role: "tool", id, name, ok: outcome!.ok, text: outcome!.text });
    this.#guard.round(
      this.calls.map(({ id, name, args, outcome }) => ({
        name,
        args,
        ok: outcome!.ok,
        // A long output is kept in a file that is called like the call; that does not make it another output.
        text: outcome!.text.replaceAll(`${id}.txt`, ""),
      })),
    );
  }

  verdict(): Verdict {
    const reason = this.broken ?? this.#guard.stop();
    if (reason) return { next: "end", how: "failed", reason };
    if (!this.last) return { next: "ask" };
    return { next: "end", how: "failed", reason: `the step limit (maxSteps=${this.#maxSteps}) is reached` };
  }
}

function latest(before: string, now: string): string {
  return before.startsWith(now) ? before : now;
}
