/** The questions that wait for a person, who can answer them, and what was answered: the first answer counts. */
import type { Logger } from "pino";
import { Fault } from "../fault.ts";
import { askBroker, type BrokerLink } from "./broker.ts";
import { type Answer, type Question, scopes } from "./question.ts";
import { fits } from "./wire.ts";

export interface ApprovalOptions {
  readonly log: Logger;
  /** Where a broker listens, if one does. Asked at every question. */
  socket(): string | undefined;
  /** Milliseconds that a question waits; undefined = for ever. Likewise. */
  limit(): number | undefined;
}

/** Milliseconds for which who was shown a question is still expected back after it has been settled: to wait for the next one. */
const comingBack = 2000;

interface Open {
  readonly question: Question;
  readonly settle: (answer: Answer, by: string) => void;
  /** Undefined: the broker cannot be asked. */
  broker?: BrokerLink;
  /** A reader of `elevate/wait` has it: a person is looking at it. */
  shown: boolean;
}

/** One open `elevate/wait`. */
export interface Reader {
  /** The first question that waits and that this reader has not been given; it has it then. */
  next(): Question | undefined;
  close(): void;
}

export class Approvals {
  readonly #open = new Map<string, Open>();
  readonly #listeners = new Set<() => void>();
  #readers = 0;
  #expected = false;
  #expecting?: ReturnType<typeof setTimeout>;

  constructor(private readonly options: ApprovalOptions) {}

  /** In the order in which they were asked. */
  pending(): Question[] {
    return [...this.#open.values()].map(({ question }) => question);
  }

  /** Calls back after every change of `pending`. Returns how to stop that. */
  watch(listener: () => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  /** Whoever holds one counts as somebody who can answer. */
  reader(): Reader {
    const given = new Set<string>();
    let closed = false;
    this.#readers++;
    return {
      next: () => {
        const found = [...this.#open.values()].find(({ question }) => !given.has(question.id));
        if (!found) return undefined;
        given.add(found.question.id);
        found.shown = true;
        return found.question;
      },
      close: () => {
        if (closed) return;
        closed = true;
        this.#readers--;
        this.#denyWhatNobodySees();
      },
    };
  }

  /**
   * Asks everybody who can answer and resolves with the first answer; with a denial where there is nobody, or no answer within the time
   * limit. Aborting `signal` withdraws the question, and the promise rejects.
   * @param mask takes known secrets out of what is logged
   */
  ask(
    about: Omit<Question, "id">,
    signal: AbortSignal,
    mask: (text: string) => string = (text) => text,
  ): Promise<Answer> {
    signal.throwIfAborted();
    const question: Question = { id: this.#newId(), ...about };
    const { promise, resolve, reject } = Promise.withResolvers<Answer>();
    const limit = this.options.limit();
    const late = () =>
      settle({ decision: "deny", reason: `nobody answered within ${limit! / 1000} s` }, "time");
    const timer = limit === undefined ? undefined : setTimeout(late, Math.min(limit, 2 ** 31 - 1));
    const note = (message: string, more: object = {}) => {
      const { id, ...told } = { ...question, command: mask(question.command) };
      this.options.log.info({ request: id, ...told, ...more }, message);
    };
    const withdraw = () => {
      note("elevation withdrawn");
      end("withdrawn");
      reject(signal.reason);
    };
    const end = (decided: "allow" | "deny" | "withdrawn") => {
      clearTimeout(timer);
      signal.removeEventListener("abort", withdraw);
      this.#open.delete(question.id);
      open.broker?.close(decided);
      this.#changed();
    };
    const settle = (answer: Answer, by: string) => {
      if (!this.#open.has(question.id)) return;
      note("elevation answered", { ...withoutPassword(answer), by });
      if (open.shown) this.#expect();
      end(answer.decision === "deny" ? "deny" : "allow");
      resolve(answer);
    };
    const open: Open = { question, settle, shown: false };
    this.#open.set(question.id, open);
    signal.addEventListener("abort", withdraw, { once: true });
    note("elevation asked for");
    open.broker = this.#askBroker(open);
    this.#changed();
    if (!open.broker) this.#denyWhatNobodySees();
    return promise;
  }

  /** An answer by `by`, for the log. Throws as `check` does. */
  answer(id: string, answer: Answer, by: string): void {
    this.check(id, answer).settle(answer, by);
  }

  /** @throws Fault "missing": no such question waits; "invalid": it asks for something else */
  check(id: string, answer: Answer): Pick<Open, "settle"> {
    const open = this.#open.get(id);
    if (!open) throw new Fault("missing", `no request ${id} waits; elevate/pending lists those that do`);
    if (!fits(open.question, answer))
      throw new Fault(
        "invalid",
        open.question.kind === "password"
          ? `request ${id} asks for a password: password ${id} PASSWORD, or deny ${id}`
          : `request ${id} asks for an approval: allow ${id} [${scopes.join("|")}], or deny ${id} [reason]`,
      );
    return open;
  }

  #askBroker(open: Open): BrokerLink | undefined {
    const path = this.options.socket();
    if (!path) return undefined;
    const { question } = open;
    const { log } = this.options;
    return askBroker(path, question, {
      onAsked: () => log.debug({ request: question.id, socket: path }, "broker asked"),
      onAnswer: (answer) => open.settle(answer, "broker"),
      onNonsense: (reason) => log.warn({ request: question.id, reason }, "the broker's line is ignored"),
      onGone: (reason) => {
        log.debug({ request: question.id, reason }, "no broker");
        open.broker = undefined;
        this.#denyWhatNobodySees();
      },
    });
  }

  /** Who was shown a question has not gone just because nothing is open at the moment. */
  #denyWhatNobodySees(): void {
    const all = [...this.#open.values()];
    if (this.#readers > 0 || this.#expected || all.some(({ shown }) => shown)) return;
    for (const open of all) if (!open.broker) open.settle({ decision: "deny", reason: nobody }, "nobody");
  }

  #expect(): void {
    clearTimeout(this.#expecting);
    this.#expected = true;
    this.#expecting = setTimeout(() => {
      this.#expected = false;
      this.#denyWhatNobodySees();
    }, comingBack);
    this.#expecting.unref();
  }

  #changed(): void {
    // A listener may leave while it is told.
    for (const listener of [...this.#listeners]) listener();
  }

  /** Short, because people type it. */
  #newId(): string {
    for (;;) {
      const id = Math.floor(Math.random() * 32 ** 4)
        .toString(32)
        .padStart(4, "0");
      if (!this.#open.has(id)) return id;
    }
  }
}

function withoutPassword(answer: Answer): object {
  return answer.decision === "password" ? { decision: answer.decision } : answer;
}

const nobody =
  "nobody is there who could answer: neither `o approve` nor `o tui` nor a broker (`olliesrv elevate`) runs";
