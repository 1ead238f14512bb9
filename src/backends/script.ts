/** The `script` backend: plays a scenario instead of asking a model. Needs no network and costs nothing. */
import { setTimeout as sleep } from "node:timers/promises";
import { Fault, toFault } from "../fault.ts";
import {
  type Backend,
  BackendError,
  type ModelEvent,
  type ModelInfo,
  type ModelRequest,
  type Usage,
} from "./backend.ts";
import { broken, passGate, type RawCall } from "./gate.ts";
import { providerError } from "./provider-error.ts";
import { newResults, rehearse } from "./rehearsal.ts";
import type { Pattern, Rule, Scenario, ScenarioFile, Step } from "./scenario.ts";
import { guess } from "./usage.ts";

const defaultWindow = 100_000;

export class ScriptBackend implements Backend {
  readonly name = "script";
  readonly defaultModel = "script";
  readonly #path?: string;
  #file?: ScenarioFile;
  /** How often the conditions of a rule have held, for `nth`. */
  readonly #uses = new WeakMap<Rule, number>();

  /** @param scenario path of a scenario file; without one the built-in rehearsal is played */
  constructor(scenario?: string) {
    this.#path = scenario || undefined;
  }

  async *stream(request: ModelRequest, signal: AbortSignal): AsyncGenerator<ModelEvent> {
    let written = 0;
    let usage: Usage | undefined;
    let reason: string | undefined;
    const raw: RawCall[] = [];
    try {
      for (const step of await this.#choose(request)) {
        const kind = step.text !== undefined ? "text" : "reasoning";
        const text = step.text ?? step.reasoning;
        if (text !== undefined) {
          for (const piece of pieces(text, step.chunk)) {
            await pause(step.delay, signal);
            written += piece.length;
            yield { type: kind, text: piece };
          }
          continue;
        }
        await pause(step.delay, signal);
        if (step.cut) throw broken(this.name, "the answer broke off before its end");
        if (step.error) throw refusal(step.error);
        if (step.finish) reason = step.finish;
        if (step.usage) usage = { input: 0, cacheRead: 0, cacheWrite: 0, output: 0, ...step.usage };
        for (const { name, args = {} } of step.calls ?? [])
          raw.push({ name, args: typeof args === "string" ? args : JSON.stringify(args) });
      }
    } catch (error) {
      if (signal.aborted) throw new Fault("interrupted", "the request was cancelled", { cause: error });
      throw error;
    }
    const { calls, finish } = passGate({
      backend: this.name,
      reason: reason ?? (raw.length > 0 ? "tool-calls" : "stop"),
      calls: raw,
      history: request.messages,
    });
    for (const call of calls) written += call.name.length + call.args.length;
    yield { type: "usage", usage: { cost: 0, ...(usage ?? guess(request, written)) } };
    for (const call of calls) yield { type: "call", call };
    yield { type: "finish", reason: finish };
  }

  async models(): Promise<ModelInfo[]> {
    return [{ id: this.defaultModel, window: await this.window() }];
  }

  async window(): Promise<number> {
    return (await this.#scenario())?.window ?? defaultWindow;
  }

  async #scenario(): Promise<Scenario | undefined> {
    if (!this.#path) return undefined;
    // Most servers never play a file: the YAML parser is loaded by those that do.
    this.#file ??= new (await import("./scenario.ts")).ScenarioFile(this.#path);
    return this.#file.read();
  }

  async #choose(request: ModelRequest): Promise<Step[]> {
    let scenario: Scenario | undefined;
    try {
      scenario = await this.#scenario();
    } catch (error) {
      throw new BackendError(toFault(error), { retryable: false });
    }
    if (!scenario) return rehearse(request);
    let chosen: Step[] | undefined;
    // All are looked at: `nth` counts also while an earlier rule is the one that is played.
    for (const rule of scenario.rules) {
      const groups = matches(rule, request);
      if (!groups) continue;
      const use = (this.#uses.get(rule) ?? 0) + 1;
      this.#uses.set(rule, use);
      const { nth } = rule.match;
      if (nth === undefined || [nth].flat().includes(use))
        chosen ??= rule.do.map((step) => fill(step, groups) as Step);
    }
    if (chosen) return chosen;
    const last = request.messages.at(-1);
    const what = last ? `${last.role} message "${last.text.slice(0, 60)}"` : "empty conversation";
    const fault = new Fault("missing", `no rule of ${this.#path} matches the ${what}`);
    throw new BackendError(fault, { retryable: false });
  }
}

/** The groups that the rule's expressions have found, or undefined where a condition does not hold (`nth` aside). */
function matches({ match }: Rule, request: ModelRequest): string[] | undefined {
  const groups: string[] = [];
  if (match.agent !== undefined && !is(match.agent, request.agent?.config ?? "")) return undefined;
  if (match.user !== undefined) {
    const user = request.messages.findLast((message) => message.role === "user");
    const found = user && find(match.user, user.text);
    if (!found) return undefined;
    groups.push(...found);
  }
  const results = newResults(request.messages);
  if (match.tool === undefined && match.result === undefined) {
    // A rule about what the user said is not played again for the results of its own calls.
    const speaks = match.user !== undefined && results.length > 0;
    return speaks ? undefined : groups;
  }
  for (const result of results) {
    if (match.tool !== undefined && !is(match.tool, result.name)) continue;
    const found = match.result === undefined ? [] : find(match.result, result.text);
    if (found) return [...groups, ...found];
  }
  return undefined;
}

const is = (pattern: Pattern, text: string): boolean =>
  typeof pattern === "string" ? pattern === text : pattern.test(text);

function find(pattern: Pattern, text: string): string[] | undefined {
  if (typeof pattern === "string") return text.includes(pattern) ? [] : undefined;
  return pattern
    .exec(text)
    ?.slice(1)
    .map((group) => group ?? "");
}

/** Puts `$1` … `$9` into every text of a step. A number that no group has stays as it is, so that shell and awk keep theirs. */
function fill(value: unknown, groups: string[]): unknown {
  if (typeof value === "string")
    return value.replace(/\$([1-9])/g, (text, n) => groups[Number(n) - 1] ?? text);
  if (Array.isArray(value)) return value.map((item) => fill(item, groups));
  if (typeof value === "object" && value !== null)
    return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, fill(item, groups)]));
  return value;
}

/** Cuts between characters, never inside one. */
function* pieces(text: string, size: number | undefined): Generator<string> {
  if (size === undefined) {
    if (text !== "") yield text;
    return;
  }
  const characters = Array.from(text);
  for (let i = 0; i < characters.length; i += size) yield characters.slice(i, i + size).join("");
}

async function pause(milliseconds: number | undefined, signal: AbortSignal): Promise<void> {
  signal.throwIfAborted();
  if (milliseconds) await sleep(milliseconds, undefined, { signal });
}

function refusal({ status, message, retryAfter }: NonNullable<Step["error"]>): BackendError {
  if (status === undefined)
    return new BackendError(new Fault("unavailable", `script: ${message}`), { retryable: true });
  const headers = new Headers(retryAfter === undefined ? {} : { "retry-after": String(retryAfter) });
  return providerError({ backend: "script", status, headers, body: { error: { message } } });
}
