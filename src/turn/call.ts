/** One tool call of an answer, from the model's text to its one result. */
import type { ModelCall } from "../backends/backend.ts";
import type { ElevatedCall } from "../elevate/elevation.ts";
import { CodedFault, Fault, toFault } from "../fault.ts";
import type { BlockHandle } from "../store/chat.ts";
import type { Hands, Link } from "../tools/hands.ts";
import type { Approval, CallOutcome, Concurrency, Prepared } from "../tools/tool.ts";
import { wishesOf } from "../tools/wishes.ts";
import type { TurnHost } from "./host.ts";

export class Call {
  readonly id: string;
  readonly name: string;
  readonly args: string;
  readonly concurrency: Concurrency;
  outcome?: CallOutcome;
  #leave?: () => void;
  /** Names it on another host for ever: asked for again, it is not run again. */
  readonly #opId = Bun.randomUUIDv7();
  /** What the user has said to it, where it had to be asked. */
  #approval?: Approval;
  /** Nobody waits for it any more. */
  #over = false;
  #block?: BlockHandle;
  /** What the block shows so far. */
  #shown: "nothing" | "whole lines" | "a begun line" = "nothing";

  /** Writes the call block. */
  constructor(
    readonly host: TurnHost,
    call: ModelCall,
    readonly prepared: Prepared,
    private readonly turn: {
      /** Who ends it, should it be ended now. */
      stopper(): string;
      /** Has the user told of a link that is lost for long. */
      watched(link: Link): Link;
    },
  ) {
    this.id = call.id;
    this.name = call.name;
    this.args = call.args;
    this.concurrency = prepared.ok ? prepared.tool.concurrency : "read";
    host.store.chat.block("call", { name: this.name, id: this.id }, this.args);
  }

  /** Waits until the session lets the call in. Resolves with whether somebody has to allow it. */
  async admit(): Promise<boolean> {
    const leave = await this.host.gate.enter(this.concurrency === "exclusive");
    // Given up while it stood in line: nobody will come back for the place.
    if (this.#over) leave();
    else this.#leave = leave;
    const asked = this.#elevated();
    this.#approval = asked && this.host.services.elevation.granted(asked);
    return asked !== undefined && !this.#approval;
  }

  /** Asks whether the call may run. Resolves with its outcome where it may not. */
  async approve(signal: AbortSignal): Promise<CallOutcome | undefined> {
    const asked = this.#elevated();
    if (!asked) return undefined;
    const verdict = await this.host.services.elevation.allow(asked, signal);
    if ("approval" in verdict) {
      this.#approval = verdict.approval;
      return undefined;
    }
    const text = `${this.name} was not run: ${verdict.denied}. Do not try to reach the same in another way; go on without it, or say what you need it for.`;
    return { ok: false, how: "refused", text };
  }

  /** Undefined: it stays in the sandbox, or will not run anyway. */
  #elevated(): ElevatedCall | undefined {
    if (!this.prepared.ok) return undefined;
    const { tool, args } = this.prepared;
    const wishes = wishesOf(tool, args);
    if (!wishes.elevated) return undefined;
    const say = (text: string) => {
      this.host.store.chat.block("info", {}, text);
      this.host.touch("chat");
    };
    const { host, sudo } = this.host.handsFor(tool);
    const there = { host, sudo: sudo?.(this.#opId) };
    return { session: this.host.gate, tool, args, wishes, ctx: this.host.callContext(tool), say, ...there };
  }

  whyStopped(): Fault {
    return new Fault("interrupted", `cancelled by ${this.turn.stopper()}`);
  }

  /**
   * Runs the call. Aborting `signal` ends its processes; what was printed so far is still returned.
   * @throws CodedFault where nobody knows how it has gone, which is no result
   */
  async execute(signal: AbortSignal, link: Link): Promise<CallOutcome> {
    if (!this.prepared.ok) return { ok: false, how: "refused", text: this.prepared.text };
    const { store, services } = this.host;
    const hands = this.host.handsFor(this.prepared.tool);
    try {
      this.#block = this.#open();
      store.append({ t: "call", id: this.id, ...(hands.host !== undefined && { op: this.#opId }) });
      await store.sync();
      if (signal.aborted)
        return {
          ok: false,
          how: "cancelled",
          text: `${this.name} was ${this.whyStopped().message} before it ran.`,
        };
      services.counters.toolCalls++;
      return await this.#run(hands, this.prepared, signal, link);
    } catch (error) {
      if (error instanceof CodedFault) throw error;
      if (!signal.aborted) services.log.error({ err: error, tool: this.name }, "tool call failed");
      return { ok: false, how: "failed", text: `The call could not be run: ${toFault(error).message}` };
    }
  }

  #run(
    hands: Hands,
    prepared: Extract<Prepared, { ok: true }>,
    signal: AbortSignal,
    link: Link,
  ): Promise<CallOutcome> {
    const context = { ...this.host.callContext(prepared.tool), approval: this.#approval };
    const names = { callId: this.id, opId: this.#opId };
    return hands.call(prepared, context, names, signal, {
      output: (text) => this.#show(text),
      ...this.turn.watched(link),
    });
  }

  /** It will have no result: what is known of it is on another host. */
  abandon(): void {
    this.#approval?.sudo?.password?.fill(0);
    this.release();
    this.#block?.close();
  }

  settle(outcome: CallOutcome): void {
    this.outcome = outcome;
    this.#approval?.sudo?.password?.fill(0);
    this.release();
    const block = this.#block ?? this.#open();
    // What was streamed stands there already.
    const { text, closing = text } = outcome;
    if (this.#shown === "nothing") block.append(text);
    else if (closing !== "") block.append(this.#shown === "a begun line" ? `\n${closing}` : closing);
    block.close();
    this.host.touch("chat");
  }

  /**
   * Says something where its output stands: behind a block that is open, nobody would see it. Returns whether there is such a place. It is no
   * part of the result.
   */
  note(text: string): boolean {
    if (this.outcome || !this.#block) return false;
    const begun = this.#shown === "a begun line";
    this.#block.append(`${begun ? "\n" : ""}[${text}]\n`);
    if (begun) this.#shown = "whole lines";
    this.host.touch("chat");
    return true;
  }

  /** Gives the session's place back, also one that is still to come. */
  release(): void {
    this.#over = true;
    this.#leave?.();
    this.#leave = undefined;
  }

  #open(): BlockHandle {
    return this.host.store.chat.open("tool", { name: this.name, id: this.id });
  }

  #show(text: string): void {
    if (this.outcome || text === "") return;
    this.#shown = text.endsWith("\n") ? "whole lines" : "a begun line";
    this.#block?.append(text);
    this.host.touch("chat");
  }
}
