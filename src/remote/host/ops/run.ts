/** Running what an operation consists of, to its end. What it gives is the last record of the operation. */
import { startJob } from "../../../exec/job/start.ts";
import type { Supervisor } from "../../../exec/job/supervisor-process.ts";
import { watchJob } from "../../../exec/job/watch.ts";
import { Fault, toFault } from "../../../fault.ts";
import { callTool } from "../../../tools/dispatch.ts";
import { findSudo } from "../../../tools/sudo-door.ts";
import type { Approval, CallOutcome, Tool } from "../../../tools/tool.ts";
import type { OpStart, OpStatus } from "../../protocol/operation.ts";
import type { Calls, ToolStep } from "./calls.ts";
import type { Confinement } from "./confinement.ts";
import type { OperationsGround } from "./engine.ts";
import type { Operation } from "./operation.ts";
import { runProgram } from "./program.ts";
import type { Ended } from "./record.ts";
import { executionOf, type RawStep } from "./steps.ts";

/** How it ended; the rest of the record is the same for all. */
export type Ending = Pick<Ended, "status" | "code" | "signal" | "outcome" | "remark">;

export interface Workshop {
  ground: OperationsGround;
  confinement: Confinement;
  calls: Calls;
  /** The password for an operation, which is gone from then on. */
  password(opId: string): Uint8Array | undefined;
  /** Durable when it resolves. */
  supervised(op: Operation, supervisor: Supervisor): Promise<void>;
}

/** What the steps of an operation are, in the order in which they run. Never rejects. */
export async function runSteps(op: Operation, request: OpStart, workshop: Workshop): Promise<Ending> {
  const limit = Math.min(
    request.timeout ?? Number.POSITIVE_INFINITY,
    workshop.ground.policy.policy.max_timeout_secs,
  );
  const end = performance.now() + limit * 1000;
  let last: Ending = { status: "exited", code: 0 };
  for (const [at, step] of (request.steps as RawStep[]).entries()) {
    if (at > 0) op.nextStep();
    last = await runStep(op, step, request, workshop, Math.max(1, end - performance.now()));
    if (last.status !== "exited" || last.code !== 0) break;
  }
  return last;
}

async function runStep(
  op: Operation,
  step: RawStep,
  request: OpStart,
  { ground, confinement }: Workshop,
  timeout: number,
): Promise<Ending> {
  try {
    const how = {
      opId: op.opId,
      sandbox: request.sandbox,
      free: request.grant !== undefined,
      outlives: false,
    };
    const execution = executionOf(step, ground, confinement, how);
    try {
      const end = await runProgram({
        ...execution,
        out: op.spool("out"),
        err: op.spool("err"),
        onOutput: op.pump,
        onStarted: (pid) => {
          op.pid = pid;
        },
        timeout,
        signal: op.control.signal,
        grace: () => op.grace,
      });
      const said = (await execution.cage?.after("")) ?? [];
      const left = end.leftovers.map(({ pid, command }) => `pid ${pid} ${command}`.trim());
      const remarks = [...(left.length > 0 ? [`ended with it: ${left.join("; ")}`] : []), ...said];
      const remark = remarks.join("; ") || undefined;
      const status: OpStatus =
        end.how === "exit"
          ? end.signal === undefined
            ? "exited"
            : "signaled"
          : end.how === "timeout"
            ? "timeout"
            : "cancelled";
      return { status, code: end.code, signal: end.signal, remark };
    } finally {
      op.pid = undefined;
      execution.clear();
      // A second time it does nothing: this is for the step that did not come to its end.
      await execution.cage?.after("");
    }
  } catch (error) {
    return { status: "denied", remark: toFault(error).message };
  }
}

const statuses: Record<CallOutcome["how"], OpStatus> = {
  done: "exited",
  failed: "exited",
  cancelled: "cancelled",
  timedOut: "timeout",
  refused: "denied",
};

/** A tool call, as the local server runs it. Never rejects. */
export async function runCall(
  op: Operation,
  tool: Tool,
  request: OpStart,
  workshop: Workshop,
): Promise<Ending> {
  const step = request.steps[0] as ToolStep;
  const { args, repaired, callId } = step;
  const approval = approvalOf(request, workshop);
  try {
    const ctx = workshop.calls.contextOf(step, { approval });
    const prepared = { ok: true as const, tool, args, repaired };
    const text = op.spool("text");
    const outcome = await callTool(prepared, ctx, callId, op.control.signal, (piece) => {
      text.add(Buffer.from(piece));
      op.pump();
    });
    return { status: statuses[outcome.how], ...(outcome.how === "done" && { code: 0 }), outcome };
  } finally {
    approval?.sudo?.password?.fill(0);
  }
}

function approvalOf({ opId, grant }: OpStart, { password }: Workshop): Approval | undefined {
  if (!grant) return undefined;
  if (!grant.root) return { scope: grant.scope };
  return { scope: grant.scope, sudo: { program: findSudo() ?? "/usr/bin/sudo", password: password(opId) } };
}

/**
 * Starts what outlives the daemon. Resolves to undefined when it runs; else with why it does not.
 */
export async function startDetached(
  op: Operation,
  tool: Tool | undefined,
  request: OpStart,
  workshop: Workshop,
): Promise<{ ending?: Ending; after?: () => Promise<string[]> }> {
  const register = (supervisor: Supervisor) => workshop.supervised(op, supervisor);
  if (tool) return startTool(op, tool, request, workshop, register);
  const { ground, confinement } = workshop;
  try {
    const how = {
      opId: op.opId,
      sandbox: request.sandbox,
      free: request.grant !== undefined,
      outlives: true,
    };
    const execution = executionOf(request.steps[0] as RawStep, ground, confinement, how);
    await startJob(execution, op.jobFolder, register);
    return {
      after: async () => {
        execution.clear();
        return (await execution.cage?.after("")) ?? [];
      },
    };
  } catch (error) {
    return { ending: { status: "denied", remark: toFault(error).message } };
  }
}

async function startTool(
  op: Operation,
  tool: Tool,
  request: OpStart,
  workshop: Workshop,
  register: (supervisor: Supervisor) => Promise<void>,
) {
  const step = request.steps[0] as ToolStep;
  let after: (() => Promise<string[]>) | undefined;
  const ctx = workshop.calls.contextOf(step, {
    approval: approvalOf(request, workshop),
    jobs: {
      async start(execution, about) {
        await startJob(execution, op.jobFolder, register);
        after = about.after;
        return { id: op.opId };
      },
      startThere: async () => {
        throw new Error("this is that host");
      },
    },
  });
  const prepared = { ok: true as const, tool, args: step.args, repaired: step.repaired };
  const outcome = await callTool(prepared, ctx, step.callId, op.control.signal);
  return outcome.ok ? { after } : { ending: { status: "denied" as const, outcome } };
}

/** Until it has ended; found again after the daemon that has started it is gone. */
export async function watchDetached(
  op: Operation,
  supervisor: Supervisor,
  over: AbortSignal,
): Promise<Ending> {
  const { how, exit } = await watchJob(() => op.jobFolder, supervisor, over);
  if (how === "lost") return { status: "interrupted" };
  const remark = exit?.leftovers;
  const { aborted, reason } = op.control.signal;
  const late = reason instanceof Fault && reason.kind === "timeout";
  if (aborted)
    return { status: late ? "timeout" : "cancelled", code: exit?.code, signal: exit?.signal, remark };
  if (how === "killed") return { status: "signaled", signal: exit?.signal, remark };
  return { status: "exited", code: exit?.code ?? 0, remark };
}
