/**
 * One agent's turns: what the agent machine's actors do. A turn takes a waiting text, asks the model, runs its calls, asks again, and
 * ends with everything in the journal and in chat. The machine says when; this says what.
 */
import type { AgentWork, Answer, TurnEnd, Verdict } from "../../actors/agent.ts";
import { RetryLater } from "../../actors/agent.ts";
import { BackendError, type Message, type ModelCall, type ModelEvent } from "../backends/backend.ts";
import { Fault, toFault } from "../fault.ts";
import { newId } from "../ids.ts";
import type { CallOutcome } from "../tools/tool.ts";
import { AnswerWriter } from "./answer.ts";
import { Call } from "./call.ts";
import { LoopGuard } from "./guard.ts";
import type { TurnHost } from "./host.ts";

const noAnswer = { text: "", reasoning: "" };

export class Turn implements AgentWork {
  #id = "";
  /** The history as the model gets it; held only while a turn runs. */
  #messages: Message[] = [];
  #guard = new LoopGuard();
  /** Requests made in this turn. */
  #steps = 0;
  /** As it was when the last request was made: the machine's questions must not fail because a config has gone meanwhile. */
  #maxSteps?: number;
  /** The stream that is open, and what broken tries of the same request have shown. */
  #answer?: AnswerWriter;
  #shown = noAnswer;
  #calls: Call[] = [];
  /** Why this turn cannot go on, where the disk refused to keep a result. */
  #broken?: string;
  /** The server ends: what waits has to wait for its next start. */
  #halting = false;

  constructor(readonly host: TurnHost) {}

  // The machine's questions.

  promptWaits(): boolean {
    return !this.#halting && this.host.store.state.waiting.some((waiting) => waiting.how !== "queue");
  }

  anythingWaits(): boolean {
    return !this.#halting && this.host.store.state.waiting.length > 0;
  }

  verdict(): Verdict {
    const reason = this.#broken ?? this.#guard.stop();
    if (reason) return { next: "end", how: "failed", reason };
    if (this.#lastStep())
      return { next: "end", how: "failed", reason: `the step limit (maxSteps=${this.#maxSteps}) is reached` };
    return { next: "ask" };
  }

  settled(id: string, outcome: CallOutcome): void {
    const call = this.#calls.find((one) => one.id === id);
    if (!call || call.outcome) return;
    try {
      call.settle(outcome);
      this.host.store.append({ t: "result", id, name: call.name, ...outcome });
    } catch (error) {
      this.#broken = `the result of ${call.name} could not be kept: ${toFault(error).message}`;
    }
    if (this.#calls.every((one) => one.outcome)) this.#closeRound();
  }

  // The machine's actors.

  /** Takes the first waiting text: journalled first, then shown; on disk when this resolves. */
  async open(): Promise<void> {
    const { store } = this.host;
    const [next] = store.state.waiting;
    if (!next) throw new Fault("io", "no prompt waits");
    this.#id = newId();
    this.#guard = new LoopGuard();
    this.#steps = 0;
    this.#calls = [];
    this.#broken = undefined;
    store.beginTurn(this.#id, next.id);
    this.host.touch("queue", "turn", "chat");
    this.host.count("turns");
    await store.sync();
    this.#messages = await store.history();
  }

  /** Sends one request and streams its answer. Throws RetryLater when the same request may be sent again. */
  async ask(attempt: number, signal: AbortSignal): Promise<Answer> {
    if (attempt === 0) this.#prepareRequest();
    const { backend: label, model, params, agent } = this.host.settings();
    this.#answer = new AnswerWriter(this.host.store.chat, this.#shown);
    const calls: ModelCall[] = [];
    try {
      const backend = this.host.backend(label);
      const tools = this.#lastStep()
        ? []
        : this.host.loadedTools().map((tool) => this.host.registry.spec(tool));
      const system = await this.host.systemPrompt();
      signal.throwIfAborted();
      this.host.count("requests");
      const stream = backend.stream(
        {
          model,
          system,
          messages: this.#messages,
          tools,
          params,
          agent: { name: this.host.name, config: agent },
        },
        signal,
      );
      let end: Extract<ModelEvent, { type: "finish" }> | undefined;
      for await (const event of stream) {
        // What still comes after a stop belongs to nobody.
        if (signal.aborted) break;
        if (event.type === "text") this.#answer.write("assistant", event.text);
        else if (event.type === "reasoning") this.#answer.write("reasoning", event.text);
        else if (event.type === "call") calls.push(event.call);
        else if (event.type === "usage") this.#account(event.usage, label, model);
        else end = event;
        if (event.type !== "usage") this.host.touch("chat");
      }
      signal.throwIfAborted();
      if (!end)
        throw new BackendError(new Fault("io", `${label}: the answer ended without an end signal`), {
          retryable: true,
        });
      return this.#finish(calls, end);
    } catch (error) {
      if (signal.aborted) throw error;
      throw this.#failed(error, attempt);
    }
  }

  /** Closes what is open and says how the turn ended. All of it is on disk when this resolves. */
  async close(end: { how: TurnEnd; reason?: string }): Promise<void> {
    const { store } = this.host;
    try {
      if (end.how === "failed")
        this.host.log.warn({ agent: this.host.name, reason: end.reason }, "turn failed");
      if (store.state.running?.id !== this.#id) {
        // The turn never began (a full disk, say): its prompt still waits, and starting it again at once would spin.
        store.chat.block(
          "error",
          {},
          `${end.reason ?? "the turn could not begin"}; the prompt stays in the queue`,
        );
        throw new Fault("io", end.reason ?? "the turn could not begin");
      }
      for (const call of this.#calls)
        if (!call.outcome)
          this.settled(call.id, { ok: false, how: "cancelled", text: "Cancelled by the user." });
      this.#keepPartial();
      const how = this.#halting && end.how === "stopped" ? "interrupted" : end.how;
      if (how === "stopped") store.chat.block("info", {}, "Stopped by the user.");
      if (how === "interrupted") store.chat.block("info", {}, "Interrupted: the server was shut down.");
      if (end.how === "failed") store.chat.block("error", {}, end.reason ?? "the turn failed");
      store.append({ t: "end", turn: this.#id, how, reason: end.reason });
      await store.sync();
    } finally {
      this.#messages = [];
      this.#calls = [];
      this.host.touch("turn", "chat", "usage");
    }
  }

  /** From now on no turn begins, and one that is stopped counts as interrupted. */
  halt(): void {
    this.#halting = true;
  }

  /** Lets go of everything that outlives the actors: the agent is removed. */
  dispose(): void {
    for (const call of this.#calls) call.release();
    this.#answer?.close();
  }

  #prepareRequest(): void {
    this.#shown = noAnswer;
    this.#steps++;
    this.#maxSteps = this.host.settings().maxSteps;
    this.#deliverInjects();
    if (this.#lastStep())
      this.host.store.chat.block(
        "info",
        {},
        `Step limit (maxSteps=${this.#maxSteps}): one last request, without tools.`,
      );
    const note = this.#lastStep()
      ? "This is the last step of this turn: no tools are available any more. Answer with what you have, and say what is left to do."
      : this.#guard.note();
    if (note) {
      this.host.store.append({ t: "note", text: note });
      this.#messages.push({ role: "user", text: note });
    }
  }

  /** Injected texts go to the model with the results of a round; a turn that has none leaves them for the next prompt. */
  #deliverInjects(): void {
    if (this.#steps === 1) return;
    const { store } = this.host;
    for (const waiting of store.state.waiting.filter((one) => one.how === "inject")) {
      store.append({ t: "inject", prompt: waiting.id });
      store.chat.block("user", { injected: "yes" }, waiting.text);
      this.#messages.push({ role: "user", text: waiting.text });
      this.host.touch("queue", "chat");
    }
  }

  #lastStep(): boolean {
    return this.#maxSteps !== undefined && this.#steps > this.#maxSteps;
  }

  #account(usage: Parameters<TurnHost["costOf"]>[0], backend: string, model: string): void {
    const cost = this.host.costOf(usage, backend, model);
    this.host.store.append({ t: "usage", backend, model, usage, cost });
    this.host.count("tokensIn", usage.input + usage.cacheRead + usage.cacheWrite);
    this.host.count("tokensOut", usage.output);
    this.host.touch("usage");
  }

  #finish(calls: ModelCall[], end: Extract<ModelEvent, { type: "finish" }>): Answer {
    const { store } = this.host;
    const answer = this.#answer!;
    answer.close();
    this.#answer = undefined;
    this.#shown = noAnswer;
    const message = {
      text: answer.text,
      ...(answer.reasoning && { reasoning: answer.reasoning }),
      calls,
      ...(end.opaque && { opaque: end.opaque }),
    };
    store.append({ t: "assistant", ...message, finish: end.reason });
    this.#messages.push({ role: "assistant", ...message });
    if (end.reason === "length" && calls.length === 0)
      store.chat.block("info", {}, "The answer was cut off at the token limit (maxTokens).");
    if (end.reason === "filter")
      store.chat.block("info", {}, "The provider's content filter ended the answer.");
    const mayRun = end.reason === "stop" || end.reason === "tool-calls";
    this.#calls = calls.map((call) => new Call(this.host, call, mayRun));
    return {
      calls: this.#calls.map(({ id, name, concurrency }, i) => ({
        id,
        name,
        concurrency,
        work: this.#calls[i],
      })),
    };
  }

  #closeRound(): void {
    for (const { id, name, outcome } of this.#calls)
      this.#messages.push({ role: "tool", id, name, ok: outcome!.ok, text: outcome!.text });
    this.#guard.round(this.#calls.map((call) => ({ name: call.name, args: call.args, ...call.outcome! })));
    this.host.touch("chat");
  }

  /** What a failed request becomes: a later try, told in chat, or the end of the turn. */
  #failed(error: unknown, attempt: number): Error {
    const answer = this.#answer;
    answer?.close();
    const delay = this.host.retryDelay(error, attempt);
    const reason = error instanceof BackendError ? error.message : toFault(error).message;
    if (!(error instanceof BackendError) && !(error instanceof Fault))
      this.host.log.error({ err: error }, "request failed");
    if (delay === undefined) {
      const why = this.host.whyNot(error, attempt);
      return new Fault(toFault(error).kind, why ? `${reason} (${why})` : reason, { cause: error });
    }
    if (answer?.begun) this.#shown = longer(this.#shown, answer);
    this.#answer = undefined;
    const what = answer?.begun ? "The answer broke off" : "No answer";
    this.host.store.chat.block(
      "retry",
      { attempt: String(attempt + 1) },
      `${what}: ${reason}. Asking again in ${(delay / 1000).toFixed(1)} s.`,
    );
    this.host.touch("chat");
    return new RetryLater(delay, reason);
  }

  /** An answer that was cut for good stays in the history as far as it came. */
  #keepPartial(): void {
    const cut = this.#answer;
    cut?.close();
    this.#answer = undefined;
    const kept = longer(this.#shown, cut);
    this.#shown = noAnswer;
    if (kept.text === "" && kept.reasoning === "") return;
    this.host.store.append({
      t: "assistant",
      text: kept.text,
      ...(kept.reasoning && { reasoning: kept.reasoning }),
      calls: [],
      partial: true,
    });
  }
}

function longer(
  shown: { text: string; reasoning: string },
  answer: { text: string; reasoning: string } | undefined,
): { text: string; reasoning: string } {
  if (!answer || answer.text.length + answer.reasoning.length <= shown.text.length + shown.reasoning.length)
    return shown;
  return { text: answer.text, reasoning: answer.reasoning };
}
