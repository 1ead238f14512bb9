/** A call as a background job of its session, on this machine or another. */
import { Fault } from "../fault.ts";
import type { Execution } from "./execution.ts";
import type { CallContext, CallOutcome, JobRequest, Tool } from "./tool.ts";

interface Detached extends Pick<JobRequest, "notify" | "after"> {
  execution: Execution;
  /** As root. */
  sudo: boolean;
  /** What is to be said of its sandbox. */
  confined?: string;
}

/**
 * Starts the call's program as a job of its session and says where to find it.
 * @throws Fault if it cannot be started
 */
export async function detach(
  tool: Tool,
  args: Record<string, unknown>,
  ctx: CallContext,
  { execution, sudo, notify, after, confined }: Detached,
): Promise<CallOutcome> {
  if (!ctx.jobs) throw new Fault("unavailable", "jobs cannot be run here; call it without detach");
  // Root's processes can only be ended by who holds the other end of their stdin, and a job has to do without.
  if (sudo) throw new Fault("denied", "what runs as root cannot run as a job; call it without detach");
  const { id } = await ctx.jobs.start(execution, jobRequest(tool, args, ctx, notify, after));
  return jobOutcome(ctx, id, notify, confined);
}

export function jobRequest(
  tool: Tool,
  args: Record<string, unknown>,
  ctx: CallContext,
  notify: boolean,
  after?: JobRequest["after"],
): JobRequest {
  const command = typeof args.command === "string" ? args.command : JSON.stringify(args);
  return { agent: ctx.agent, tool: tool.name, command, notify, after };
}

/** What the model is told of a job that has been started. */
export function jobOutcome(ctx: CallContext, id: string, notify: boolean, confined?: string): CallOutcome {
  const told = notify ? "You get a message when it ends." : "You are not told when it ends.";
  const closing = confined ? `[${confined}]` : "";
  const text = [
    `Job ${id} runs in the background. ${told} Its files are in session/${ctx.session}/job/${id}/:`,
    "  out     what it has printed so far; ollie-9p read FILE prints a file",
    "  state   running, exited: STATUS, killed: SIGNAL or lost; a read of statewait waits for a change",
    "  exit    its exit status or signal, empty while it runs",
    "  ctl     write kill to end it and all that it has started, signal N to send it a signal",
    ...(closing ? [closing] : []),
  ].join("\n");
  return { ok: true, how: "done", text, closing };
}
