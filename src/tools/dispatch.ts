/** Running a prepared call: see `callTool`. */
import { mkdirSync, statSync } from "node:fs";
import { join } from "node:path";
import { LaunchFault } from "../exec/launch.ts";
import { run } from "../exec/process.ts";
import { Fault, toFault } from "../fault.ts";
import type { Cage } from "../sandbox/cage.ts";
import { detach } from "./detach.ts";
import { temporaryFolder } from "./environment.ts";
import { executionOf, launchOf } from "./execution.ts";
import { outcomeOf } from "./result.ts";
import type { Lease } from "./service.ts";
import { asRoot } from "./sudo.ts";
import type { Approval, CallContext, CallOutcome, Prepared, Tool } from "./tool.ts";
import { wishesOf } from "./wishes.ts";

/**
 * Runs the call where it is prepared for and gives its one result; never rejects.
 *
 * The result is what the tool printed, stderr under a line of its own, then one last line in brackets that says how it ended.
 * Exit status 0 is success. An argument named `timeout`, where the tool's schema has one, is the call's time limit in seconds.
 *
 * @param onOutput gets what is printed as it comes, cleaned for display
 * @param signal aborted: TERM at once, KILL after 500 ms, and the result keeps what was printed. A Fault as its reason says by whom:
 * "cancelled by the user"
 */
export async function callTool(
  prepared: Prepared,
  ctx: CallContext,
  callId: string,
  signal: AbortSignal,
  onOutput?: (text: string) => void,
): Promise<CallOutcome> {
  if (!prepared.ok) return refused(prepared.text);
  const { tool, args, repaired } = prepared;
  const wishes = wishesOf(tool, args);
  const { approval } = ctx;
  if (wishes.elevated && !approval)
    return refused(
      `${tool.name} was not run: it needs the user's permission, and nobody has been asked for it.`,
    );
  let lease: Lease | undefined;
  let root: ReturnType<typeof asRoot> | undefined;
  let cage: Cage | undefined;
  try {
    checkFolder(ctx.cwd);
    mkdirSync(temporaryFolder(ctx), { recursive: true, mode: 0o700 });
    if (wishes.detach && tool.service)
      throw new Fault("invalid", "what needs a service cannot run as a job; call it without detach");
    cage = approval ? undefined : await ctx.cage();
    lease = await leaseOf(tool, ctx, signal);
    const execution = executionOf(tool, args, ctx, callId, cage);
    if (lease) execution.env.OLLIE_SERVICE = lease.place;
    if (wishes.detach) {
      const kept = cage;
      const after = kept && (() => kept.after(""));
      const started = await detach(tool, args, ctx, {
        ...wishes,
        execution,
        after,
        confined: confinement(kept, approval),
      });
      // What there is to do after it is to be done when the job has ended.
      cage = undefined;
      return started;
    }
    if (wishes.sudo) root = asRoot(execution, approval!.sudo!);
    const options = {
      ...(root ?? execution),
      timeout: wishes.timeout * 1000,
      filter: () => ctx.secrets.stream(),
      onOutput,
      signal,
      spill: join(ctx.tmp, "output", `${fileName(ctx.agent)}.${fileName(callId)}.txt`),
    };
    const result = await run(options).catch((error) => {
      // Something has gone between the making of the sandbox and its use: a cache is cleared, a socket closed.
      if (!(error instanceof LaunchFault)) throw error;
      return run({ ...options, launch: launchOf(ctx, cage) });
    });
    const remarks = (await cage?.after(result.text)) ?? [];
    return outcomeOf(result, {
      tool,
      args,
      repaired,
      limit: wishes.timeout,
      signal,
      secrets: ctx.secrets,
      remarks: [lease?.note ?? "", ...remarks],
      confined: confinement(cage, approval),
    });
  } catch (error) {
    return refused(`${tool.name} could not be started: ${toFault(error).message}`);
  } finally {
    // A second time it does nothing: this is for the call that did not come to its end.
    await cage?.after("");
    if (approval) ctx.changesAllowed?.();
    root?.forget();
    lease?.release();
  }
}

async function leaseOf({ service }: Tool, ctx: CallContext, signal: AbortSignal): Promise<Lease | undefined> {
  if (!service) return undefined;
  if (!ctx.services) throw new Fault("unavailable", "it needs a service, and here none can run");
  return ctx.services.acquire(service, ctx, signal);
}

/** Agents of a session share the folder, and some providers begin to count calls anew with each conversation. */
function fileName(text: string): string {
  return text.replace(/[^\w.-]/g, "_").slice(0, 100);
}

function refused(text: string): CallOutcome {
  return { ok: false, how: "refused", text };
}

/** How far the program was confined, as the status line says it; undefined: as far as the policy wants. */
function confinement(cage: Cage | undefined, approval: Approval | undefined): string | undefined {
  if (approval) return `elevated: allowed by the user (${approval.scope})${approval.sudo ? ", as root" : ""}`;
  return cage ? cage.notice : "unsandboxed";
}

function checkFolder(cwd: string): void {
  try {
    if (statSync(cwd).isDirectory()) return;
  } catch (error) {
    throw toFault(error, "the agent's working folder cannot be used");
  }
  throw new Fault("invalid", `the agent's working folder ${cwd} is not a directory`);
}
