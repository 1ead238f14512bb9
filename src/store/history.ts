/**
 * The conversation as a model gets it, made from the records of a journal. What a crash, a stop or damage left incomplete is
 * completed here and not on disk, so that the result is always one that providers accept: it begins with a user message, and every
 * call of an assistant message is followed by exactly one result, in the order of the calls, before anything else.
 */
import type { Message, ModelCall } from "../backends/backend.ts";
import type { JournalRecord } from "./records.ts";

/** Ends the text of an answer that was cut, so that a model does not take it for one it had finished. */
export const partialMark = "[This answer was cut off here.]";

const neverRan = "This call never ran: the turn was interrupted before it began.";
const unfinished = "This call was interrupted before it finished; what it has done up to then is unknown.";
const lostPrompt = "[This message was lost: the journal was damaged.]";
const lostBeginning = "[The beginning of this conversation was lost: the journal was damaged.]";

type ToolMessage = Extract<Message, { role: "tool" }>;
type AssistantRecord = Extract<JournalRecord, { t: "assistant" }>;

export class HistoryBuilder {
  #messages: Message[] = [];
  /** Texts that wait for their turn. */
  readonly #texts = new Map<string, string>();
  /** The calls of the last assistant message, until its results are complete. */
  #calls: ModelCall[] = [];
  readonly #begun = new Set<string>();
  readonly #results = new Map<string, ToolMessage>();
  /** User messages that came between a call and its result. */
  #delayed: Message[] = [];

  add(record: JournalRecord): void {
    switch (record.t) {
      case "prompt":
        this.#texts.set(record.id, record.text);
        return;
      case "dequeue":
        this.#texts.delete(record.id);
        return;
      case "turn":
        this.#closeRound();
        this.#user(this.#take(record.prompt));
        return;
      case "inject":
        this.#user(this.#take(record.prompt));
        return;
      case "note":
        this.#user(record.text);
        return;
      case "assistant":
        this.#closeRound();
        this.#assistant(record);
        return;
      case "call":
        this.#begun.add(record.id);
        return;
      case "result":
        this.#result(record);
        return;
      case "end":
        this.#closeRound();
        return;
      case "clear":
        this.#closeRound();
        this.#messages = [];
        return;
      default:
        return;
    }
  }

  /** The history so far. Ends the builder's work. */
  finish(): Message[] {
    this.#closeRound();
    const [first] = this.#messages;
    if (first && first.role !== "user") this.#messages.unshift({ role: "user", text: lostBeginning });
    return this.#messages;
  }

  #user(text: string): void {
    const into = this.#calls.length > 0 ? this.#delayed : this.#messages;
    into.push({ role: "user", text });
  }

  #take(prompt: string): string {
    const text = this.#texts.get(prompt);
    this.#texts.delete(prompt);
    return text ?? lostPrompt;
  }

  #assistant(record: AssistantRecord): void {
    const { text, reasoning, opaque } = record;
    const kept = reasoning === undefined ? {} : { reasoning };
    if (record.partial) {
      // What a provider wants back verbatim (`opaque`) is only true of whole answers.
      if (text !== "")
        this.#messages.push({ role: "assistant", text: `${text}\n${partialMark}`, ...kept, calls: [] });
      return;
    }
    this.#calls = record.calls.filter((call, i) => record.calls.findIndex((one) => one.id === call.id) === i);
    // Providers refuse an answer without content.
    if (text === "" && this.#calls.length === 0) return;
    this.#messages.push({ role: "assistant", text, ...kept, calls: this.#calls, ...(opaque && { opaque }) });
  }

  #result(record: Extract<JournalRecord, { t: "result" }>): void {
    const call = this.#calls.find((one) => one.id === record.id);
    if (!call || this.#results.has(call.id)) return;
    this.#results.set(call.id, {
      role: "tool",
      id: call.id,
      name: call.name,
      ok: record.ok,
      text: record.text,
    });
  }

  #closeRound(): void {
    for (const { id, name } of this.#calls) {
      const text = this.#begun.has(id) ? unfinished : neverRan;
      this.#messages.push(this.#results.get(id) ?? { role: "tool", id, name, ok: false, text });
    }
    this.#messages.push(...this.#delayed);
    this.#calls = [];
    this.#delayed = [];
    this.#begun.clear();
    this.#results.clear();
  }
}
