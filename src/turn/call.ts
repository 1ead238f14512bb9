/** One tool call of an answer, from the model's text to its one result. */
import type { ModelCall } from "../backends/backend.ts";
import { toFault } from "../fault.ts";
import type { BlockHandle } from "../store/chat.ts";
import { callTool } from "../tools/dispatch.ts";
import { prepare } from "../tools/prepare.ts";
import type { CallOutcome, Concurrency, Prepared } from "../tools/tool.ts";
import type { TurnHost } from "./host.ts";

export class Call {
  readonly id: string;
  readonly name: string;
  readonly args: string;
  readonly concurrency: Concurrency;
  outcome?: CallOutcome;
  readonly #prepared: Prepared;
  #leave?: () => void;
  #block?: BlockHandle;
  #shown = false;

  /** `mayRun` is false where the answer was cut: then the call gets a refusal as its result. Writes the call block. */
  constructor(
    readonly host: TurnHost,
    call: ModelCall,
    mayRun: boolean,
  ) {
    this.id = call.id;
    this.name = call.name;
    this.args = call.args;
    this.#prepared = mayRun ? prepare(call, host.loadedTools()) : { ok: false, text: cutOff };
    this.concurrency = this.#prepared.ok ? this.#prepared.tool.concurrency : "read";
    host.store.chat.block("call", { name: this.name, id: this.id }, this.args);
  }

  /** Waits until the session lets the call in. */
  async admit(): Promise<void> {
    const leave = await this.host.gate.enter(this.concurrency === "exclusive");
    // Settled while it stood in line: whoever stopped it will not come back for the place.
    if (this.outcome) leave();
    else this.#leave = leave;
  }

  /** Runs the call. Aborting `signal` ends its processes; what was printed so far is still returned. Never throws. */
  async execute(signal: AbortSignal): Promise<CallOutcome> {
    if (!this.#prepared.ok) return { ok: false, how: "refused", text: this.#prepared.text };
    this.#block = this.#open();
    try {
      this.host.store.append({ t: "call", id: this.id });
      await this.host.store.sync();
      if (signal.aborted)
        return { ok: false, how: "cancelled", text: "Cancelled by the user before it ran." };
      this.host.count("toolCalls");
      return await callTool(this.#prepared, this.host.callContext(), this.id, signal, (text) =>
        this.#show(text),
      );
    } catch (error) {
      this.host.log.error({ err: error, tool: this.name }, "tool call failed");
      return { ok: false, how: "failed", text: `The call could not be run: ${toFault(error).message}` };
    }
  }

  settle(outcome: CallOutcome): void {
    this.outcome = outcome;
    this.release();
    const block = this.#block ?? this.#open();
    // What was streamed stands there already; of the result only its last line, the status, is news.
    block.append(this.#shown ? outcome.text.slice(outcome.text.lastIndexOf("\n") + 1) : outcome.text);
    block.close();
    this.host.touch("chat");
  }

  /** Gives the session's place back. */
  release(): void {
    this.#leave?.();
    this.#leave = undefined;
  }

  #open(): BlockHandle {
    return this.host.store.chat.open("tool", { name: this.name, id: this.id });
  }

  #show(text: string): void {
    if (this.outcome || text === "") return;
    this.#shown = true;
    this.#block?.append(text);
    this.host.touch("chat");
  }
}

const cutOff =
  "The answer was cut off at the token limit before this call was complete, so it was not run. Go on in smaller steps.";
