/**
 * An agent's turns: what the agent machine's actors do. A turn takes a waiting text, asks the model, runs its calls, asks again, and
 * ends with everything in the journal and in chat. The machine says when; this says what.
 */
import type { AgentWork, Answer, TurnEnding, Verdict } from "../../actors/agent.ts";
import { RetryLater } from "../../actors/agent.ts";
import { BackendError, type ModelCall, type Usage } from "../backends/backend.ts";
import { whyNot } from "../backends/retry.ts";
import { costOf } from "../backends/usage.ts";
import { Fault, toFault } from "../fault.ts";
import type { Link } from "../tools/hands.ts";
import { prepare } from "../tools/prepare.ts";
import type { CallOutcome } from "../tools/tool.ts";
import { AnswerWriter } from "./answer.ts";
import { Call } from "./call.ts";
import type { TurnHost } from "./host.ts";
import { Outage } from "./outage.ts";
import { type Finish, receive } from "./receive.ts";
import { Turn } from "./turn.ts";

export class Turns implements AgentWork {
  #turn?: Turn;
  /** The server ends: what waits has to wait for its next start. */
  #halting = false;

  readonly #outage: Outage;

  constructor(readonly host: TurnHost) {
    const say = (text: string) => {
      if (this.#turn?.calls.some((call) => call.note(text))) return;
      host.store.chat.block("info", {}, text);
      host.touch("chat");
    };
    this.#outage = new Outage(() => host.grace, say);
  }

  // The machine's questions. None of them throws: a machine that does is lost.

  promptWaits(): boolean {
    return !this.#halting && this.host.store.state.waiting.some((waiting) => waiting.how !== "queue");
  }

  anythingWaits(): boolean {
    return !this.#halting && this.host.store.state.waiting.length > 0;
  }

  elsewhere(): boolean {
    return this.host.elsewhere;
  }

  verdict(): Verdict {
    return this.#turn?.verdict() ?? { next: "end", how: "failed", reason: "the turn is over" };
  }

  settled(id: string, outcome: CallOutcome): void {
    const call = this.#turn?.calls.find((one) => one.id === id);
    if (call) this.#settle(this.#turn!, call, outcome);
  }

  // The machine's actors. One that was stopped goes on until it notices, beside whatever comes after it: each keeps to its own turn.

  /** Takes the first waiting text: journalled first, then shown; on disk when this resolves. */
  async open(): Promise<void> {
    const { store, services } = this.host;
    const [next] = store.state.waiting;
    if (!next) throw new Fault("io", "no prompt waits");
    const turn = new Turn();
    this.#turn = turn;
    store.beginTurn(turn.id, next.id);
    services.counters.turns++;
    this.host.touch("queue", "turn", "chat", "usage");
    await store.sync();
    turn.messages = await store.history();
  }

  /**
   * Waits until the tools can be run on the session's host, and looks at the project there, once a turn: each look is a way to that host and
   * back, and a prompt that stays the same is found in a cache.
   * @throws CodedFault where that host cannot be used
   */
  async reach(signal: AbortSignal, link: Link): Promise<void> {
    const turn = this.#turn;
    if (!turn) throw new Fault("io", "no turn runs");
    await this.host.hands.ready(signal, this.#watched(link));
    turn.project = await this.host.survey(signal);
  }

  /** The same, and the user is told where it takes long. */
  #watched({ lost, back }: Link): Link {
    return {
      lost: (host) => {
        this.#outage.lost(host);
        lost(host);
      },
      back: () => {
        this.#outage.back(this.host.hands.host!);
        back();
      },
    };
  }

  /** Sends one request and streams its answer. Throws RetryLater when the same request may be sent again. */
  async ask(attempt: number, signal: AbortSignal): Promise<Answer> {
    const turn = this.#turn;
    if (!turn) throw new Fault("io", "no turn runs");
    const { store, services } = this.host;
    try {
      if (attempt === 0) this.#prepareRequest(turn);
      turn.answer = new AnswerWriter(store.chat, () => this.host.touch("chat"), turn.shown);
      const { backend, model, params, agent } = this.host.settings();
      const provider = services.backend(backend);
      const tools = turn.last
        ? []
        : this.host.loadedTools().map((tool) => this.host.hands.registry.spec(tool));
      const project = turn.project ?? (await this.host.survey(signal));
      const system = store.secrets.mask(this.host.systemPrompt(project));
      signal.throwIfAborted();
      services.counters.requests++;
      const request = { model, system, messages: store.masked(turn.messages), tools, params };
      const stream = provider.stream({ ...request, agent: { name: this.host.name, config: agent } }, signal);
      const account = (usage: Usage) => this.#account(usage, backend, model);
      const { calls, end } = await receive(stream, turn.answer, signal, account);
      return this.#finish(turn, turn.answer, calls, end);
    } catch (error) {
      if (signal.aborted) throw error;
      throw this.#failed(turn, error, attempt);
    }
  }

  /** Closes what is open and says how the turn ended. All of it is on disk when this resolves. */
  async close(end: TurnEnding): Promise<void> {
    const { store, services, name } = this.host;
    const turn = this.#turn;
    if (!turn) throw new Fault("io", "no turn runs");
    if (end.how === "failed") services.log.warn({ agent: name, reason: end.reason }, "turn failed");
    try {
      if (store.state.running?.id !== turn.id)
        throw new Fault("io", end.reason ?? "the turn could not begin");
      this.#complete(turn, end.halts === true);
      const how = this.#halting && end.how === "stopped" ? "interrupted" : end.how;
      if (how === "stopped") store.chat.block("info", {}, "Stopped by the user.");
      if (how === "interrupted") store.chat.block("info", {}, "Interrupted: the server was shut down.");
      if (how === "failed") store.chat.block("error", {}, end.reason ?? "the turn failed");
      store.appendOrOwe({ t: "end", turn: turn.id, how, reason: end.reason });
      await store.sync();
    } catch (error) {
      services.log.error({ err: error, agent: name }, "turn could not be closed");
      // The machine rests now: to begin what waits again and again would not help.
      const waits = store.state.waiting.length > 0 ? "; what waits stays in the queue" : "";
      store.chat.block("error", {}, `${toFault(error).message}${waits}`);
      throw error;
    } finally {
      this.#turn = undefined;
      this.#outage.over();
      this.host.touch("turn", "chat");
    }
  }

  /** Ends the turn, if one runs, in the place of a machine that cannot. */
  async abandon(reason: string): Promise<void> {
    // What goes wrong here is in the log and, where possible, in chat.
    if (this.#turn) await this.close({ how: "failed", reason }).catch(() => {});
  }

  /** From now on no turn begins, and one that is stopped counts as interrupted. */
  halt(): void {
    this.#halting = true;
  }

  /** Lets go of everything that outlives the actors: the agent is removed. */
  dispose(): void {
    for (const call of this.#turn?.calls ?? []) call.release();
    this.#outage.over();
    this.#turn?.answer?.close();
    this.#turn = undefined;
  }

  #prepareRequest(turn: Turn): void {
    const { store } = this.host;
    const { maxSteps } = this.host.settings();
    turn.beginStep(maxSteps);
    this.#deliverInjects(turn);
    if (turn.last)
      store.chat.block("info", {}, `Step limit (maxSteps=${maxSteps}): one last request, without tools.`);
    const note = turn.note();
    if (!note) return;
    store.append({ t: "note", text: note });
    turn.messages.push({ role: "user", text: note });
  }

  /** Injected texts go to the model with the results of a round; a turn that has none leaves them for the next prompt. */
  #deliverInjects(turn: Turn): void {
    if (turn.first) return;
    const { store } = this.host;
    for (const waiting of store.state.waiting.filter((one) => one.how === "inject")) {
      store.append({ t: "inject", prompt: waiting.id });
      store.chat.block("user", { injected: "yes" }, waiting.text);
      turn.messages.push({ role: "user", text: waiting.text });
      this.host.touch("queue", "chat");
    }
  }

  #account(usage: Usage, backend: string, model: string): void {
    const { store, services } = this.host;
    store.appendOrOwe({ t: "usage", backend, model, usage, cost: costOf(usage, backend, model) });
    services.counters.tokensIn += usage.input + usage.cacheRead + usage.cacheWrite;
    services.counters.tokensOut += usage.output;
    this.host.touch("usage");
  }

  #finish(turn: Turn, answer: AnswerWriter, calls: ModelCall[], { reason, opaque }: Finish): Answer {
    const { store } = this.host;
    answer.close();
    // Before anything is written: where the config has gone meanwhile, the turn ends here.
    const tools = calls.length === 0 || turn.last ? [] : this.host.loadedTools();
    const { text, reasoning } = answer;
    const message = { text, ...(reasoning && { reasoning }), calls, ...(opaque && { opaque }) };
    store.append({ t: "assistant", ...message, finish: reason });
    turn.messages.push({ role: "assistant", ...message });
    turn.forgetShown();
    const remark = remarkOn(reason, text, calls);
    if (remark) store.chat.block("info", {}, remark);
    const refusal = whyNotRun[reason];
    turn.calls = calls.map(
      (call) =>
        new Call(this.host, call, refusal ? { ok: false, text: refusal } : prepare(call, tools), {
          stopper: () => (this.#halting ? "the server's shutdown" : "the user"),
          watched: (link) => this.#watched(link),
        }),
    );
    this.host.touch("chat");
    return { calls: turn.calls.map((call) => ({ ...identity(call), work: call })) };
  }

  #settle(turn: Turn, call: Call, outcome: CallOutcome): void {
    if (call.outcome) return;
    call.settle(outcome);
    const { ok, how, text } = outcome;
    const refused = this.host.store.appendOrOwe({ t: "result", id: call.id, name: call.name, ok, how, text });
    if (refused) turn.broken = `the result of ${call.name} is not on disk: ${refused.message}`;
    if (turn.calls.every((one) => one.outcome)) turn.closeRound();
  }

  /** What a failed request becomes: a later try, told in chat, or the end of the turn. */
  #failed(turn: Turn, error: unknown, attempt: number): Error {
    const { services, store } = this.host;
    const begun = turn.answer?.text || turn.answer?.reasoning;
    turn.keepShown();
    const { message: reason, kind } = error instanceof BackendError ? error.fault : toFault(error);
    if (!(error instanceof BackendError) && !(error instanceof Fault))
      services.log.error({ err: error }, "request failed");
    const delay = services.retryDelay(error, attempt);
    if (delay === undefined) {
      const why = whyNot(error, attempt);
      return new Fault(kind, why ? `${reason} (${why})` : reason, { cause: error });
    }
    const what = begun ? "The answer broke off" : "No answer";
    store.chat.block(
      "retry",
      { attempt: String(attempt + 1) },
      `${what}: ${reason}. Asking again in ${(delay / 1000).toFixed(1)} s.`,
    );
    this.host.touch("chat");
    return new RetryLater(delay, reason);
  }

  /**
   * Gives every call its result, and keeps an answer that was cut for good as far as it came.
   * @param broken the way to another host is: of a call that has begun there nothing is known, and that is no result
   */
  #complete(turn: Turn, broken: boolean): void {
    const text = this.#halting ? "Cancelled: the server was shut down." : "Cancelled by the user.";
    for (const call of turn.calls)
      if (broken && !call.outcome) call.abandon();
      else this.#settle(turn, call, { ok: false, how: "cancelled", text });
    turn.keepShown();
    const { text: shown, reasoning } = turn.shown;
    if (shown === "" && reasoning === "") return;
    this.host.store.appendOrOwe({
      t: "assistant",
      text: shown,
      ...(reasoning && { reasoning }),
      calls: [],
      partial: true,
    });
  }
}

function identity({ id, name, concurrency }: Call) {
  return { id, name, concurrency };
}

/** Why calls of an answer that ended so are not run. */
const whyNotRun: Partial<Record<Finish["reason"], string>> = {
  length:
    "The answer was cut off at the token limit before this call was complete, so it was not run. Go on in smaller steps.",
  filter: "The provider's content filter ended the answer, so this call was not run.",
};

/** What the user is told of an answer that does not speak for itself. */
function remarkOn(reason: Finish["reason"], text: string, calls: ModelCall[]): string | undefined {
  if (reason === "filter") return "The provider's content filter ended the answer.";
  if (calls.length > 0) return undefined;
  if (reason === "length") return "The answer was cut off at the token limit (maxTokens).";
  return text === "" ? "The model answered nothing." : undefined;
}
