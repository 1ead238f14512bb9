/** Tools that run on another host. */

import { Excerpt } from "../../exec/excerpt.ts";
import { jobOutcome, jobRequest } from "../../tools/detach.ts";
import type { CallListener, Hands, Link, ProjectSurvey, SudoDoor } from "../../tools/hands.ts";
import type { CallContext, CallOutcome, Prepared, Tool, ToolRegistry } from "../../tools/tool.ts";
import { type Wishes, wishesOf } from "../../tools/wishes.ts";
import { sealGrant } from "../protocol/hash.ts";
import type { OpReport, OpStart } from "../protocol/operation.ts";
import type { Peer } from "../protocol/peer.ts";
import { projectSurvey } from "../protocol/session.ts";
import type { RemoteLink } from "./link.ts";
import type { Operation, Request } from "./operation.ts";
import { remoteRegistry } from "./registry.ts";
import { cancelledAway, interrupted, outcomeOn, outOfReach, refusal } from "./result.ts";
import { remoteSudo, sendSecret } from "./sudo.ts";

/** Milliseconds for which a grant holds: the time from its making to the start. */
const grantTime = 120_000;
/** Bytes of output that are kept here at each end for a call whose result the host does not make. */
const keptOutput = 8 * 1024;

export interface HandsOptions {
  /** Milliseconds without the host after which a call is reported to the model; undefined: it waits. */
  report?: number;
}

type Ready = Extract<Prepared, { ok: true }>;

export class RemoteHands implements Hands {
  readonly host: string;
  readonly registry: ToolRegistry;

  constructor(
    private readonly link: RemoteLink,
    private readonly options: HandsOptions = {},
  ) {
    this.host = link.target;
    this.registry = remoteRegistry(() => link.tools);
  }

  sudo(opId: string): SudoDoor {
    return remoteSudo(this.link, opId);
  }

  async ready(signal: AbortSignal, listener: Link): Promise<void> {
    await this.link.gate.wait(signal, this.#patience(listener));
  }

  async survey(cwd: string, signal: AbortSignal): Promise<ProjectSurvey> {
    return this.link.ask("project.survey", { cwd }, projectSurvey, signal);
  }

  async call(
    prepared: Prepared,
    ctx: CallContext,
    call: { callId: string; opId: string; again?: boolean },
    signal: AbortSignal,
    listener: CallListener,
  ): Promise<CallOutcome> {
    if (!prepared.ok) return { ok: false, how: "refused", text: prepared.text };
    const { tool, args } = prepared;
    const wishes = wishesOf(tool, args);
    if (wishes.elevated && !ctx.approval && !call.again)
      return refused(
        `${tool.name} was not run: it needs the user's permission, and nobody has been asked for it.`,
      );
    const running = new RunningCall(this.link, this.options, tool, ctx, call.opId, listener);
    const request = call.again ? undefined : requestOf(prepared, wishes, ctx, call.callId);
    const operation = running.start(request, wishes);
    try {
      if (wishes.detach) return await this.#detach(operation, tool, args, wishes, ctx);
      return await running.outcome(operation, signal);
    } catch (error) {
      if (signal.aborted && !operation.asked)
        return { ok: false, how: "cancelled", text: `${tool.name} was ${reasonOf(signal)} before it ran.` };
      return refusal(tool.name, error);
    }
  }

  async #detach(
    operation: Operation,
    tool: Tool,
    args: Record<string, unknown>,
    { notify, sudo }: Wishes,
    ctx: CallContext,
  ): Promise<CallOutcome> {
    if (!ctx.jobs) return refused("jobs cannot be run here; call it without detach");
    if (sudo) return refused("what runs as root cannot run as a job; call it without detach");
    const begin = async () => void (await operation.accepted);
    const { id } = await ctx.jobs.startThere(operation.opId, jobRequest(tool, args, ctx, notify), begin);
    return outcomeOn(this.host, jobOutcome(ctx, id, notify), (text) => text);
  }

  #patience(listener: Link) {
    return { lost: () => listener.lost(this.host), back: () => listener.back() };
  }
}

/** One call, and what is known here of its output while it runs there. */
class RunningCall {
  readonly #output = new Excerpt(keptOutput);
  readonly #mask;
  readonly #decoder = new TextDecoder();
  /** Resolves when the host has been away for as long as the user wants to wait. */
  readonly #gone = Promise.withResolvers<void>();
  #timer?: ReturnType<typeof setTimeout>;

  constructor(
    private readonly link: RemoteLink,
    private readonly options: HandsOptions,
    private readonly tool: Tool,
    private readonly ctx: CallContext,
    private readonly opId: string,
    private readonly listener: CallListener,
  ) {
    this.#mask = ctx.secrets.stream();
  }

  start(request: Request | undefined, wishes: Wishes): Operation {
    return this.link.operations.run(this.opId, request, {
      untilAccepted: wishes.detach,
      output: (stream, data) => this.#show(stream, data),
      arm: (peer, hash) => this.#arm(peer, hash, wishes),
      lost: () => this.#lost(),
      back: () => this.#back(),
    });
  }

  async outcome(operation: Operation, signal: AbortSignal): Promise<CallOutcome> {
    const { target } = this.link;
    const away = Promise.withResolvers<"away">();
    const stop = () => {
      operation.cancel();
      if (operation.asked && !this.link.gate.now) away.resolve("away");
    };
    if (signal.aborted) stop();
    signal.addEventListener("abort", stop, { once: true });
    try {
      const gone = this.#gone.promise.then(() => "gone" as const);
      const end = await Promise.race([operation.ended, away.promise, gone]);
      this.#flush();
      if (end === "away") return cancelledAway(target, signal.reason, this.#kept());
      if (end === "gone") return outOfReach(target, this.options.report! / 1000, this.#kept());
      return this.#result(end, signal);
    } finally {
      signal.removeEventListener("abort", stop);
      clearTimeout(this.#timer);
    }
  }

  #result(report: OpReport, signal: AbortSignal): CallOutcome {
    const { target } = this.link;
    const mask = (text: string) => this.ctx.secrets.mask(text);
    if (report.outcome) return outcomeOn(target, sayWho(report.outcome, signal), mask);
    if (report.status === "denied")
      return refused(`${this.tool.name} was not run: ${target} does not allow it.`);
    return interrupted(target, report, this.#kept());
  }

  #arm(peer: Peer, hash: string, wishes: Wishes): Pick<OpStart, "grant"> {
    this.link.tellChanges(peer);
    const { approval } = this.ctx;
    if (!approval) return {};
    if (approval.sudo?.password) sendSecret(peer, this.opId, approval.sudo.password);
    const granted = { scope: approval.scope, root: wishes.sudo, expires: this.link.hostTime() + grantTime };
    const key = Buffer.from(this.link.locator!.key, "base64");
    return { grant: { ...granted, mac: sealGrant(key, { opId: this.opId, hash, ...granted }) } };
  }

  #show(stream: string, data: Buffer): void {
    if (stream !== "text") return;
    const text = this.#mask.push(this.#decoder.decode(data, { stream: true }));
    this.#output.add(text);
    this.listener.output(text);
  }

  /** What was held back, since it could have been half of a secret. */
  #flush(): void {
    const rest = this.#mask.end();
    this.#output.add(rest);
    this.listener.output(rest);
  }

  #kept(): string {
    return this.#output
      .render(2 * keptOutput, (missing) => `[… ${missing} bytes left out]`)
      .replace(/\n$/, "");
  }

  #lost(): void {
    this.listener.lost(this.link.target);
    const { report } = this.options;
    if (report !== undefined) this.#timer = setTimeout(() => this.#gone.resolve(), report);
  }

  #back(): void {
    clearTimeout(this.#timer);
    this.listener.back();
  }
}

function requestOf(
  { tool, args, repaired }: Ready,
  wishes: Wishes,
  ctx: CallContext,
  callId: string,
): Request {
  const step = {
    tool: tool.name,
    args,
    callId,
    agent: ctx.agent,
    session: ctx.session,
    cwd: ctx.cwd,
    sandbox: ctx.sandbox ?? "",
    ...(repaired !== undefined && { repaired }),
  };
  return { steps: [step], sandbox: ctx.sandbox ?? "", detach: wishes.detach };
}

/** The host knows only that it was cancelled, not by whom. */
function sayWho<T extends CallOutcome>(outcome: T, signal: AbortSignal): T {
  if (outcome.how !== "cancelled" || !signal.aborted) return outcome;
  const say = (text: string) =>
    text.replace(/\[(?:cancelled by the user|cancelled)(?= after )/, `[${reasonOf(signal)}`);
  const { closing } = outcome;
  if (!closing) return outcome;
  return { ...outcome, text: outcome.text.slice(0, -closing.length) + say(closing), closing: say(closing) };
}

function reasonOf(signal: AbortSignal): string {
  return signal.reason instanceof Error && signal.reason.name === "Fault"
    ? signal.reason.message
    : "cancelled by the user";
}

function refused(text: string): CallOutcome {
  return { ok: false, how: "refused", text };
}
