/** From a prepared call to the process that is to be started for it. */
import type { Launch } from "../exec/launch.ts";
import { plainLaunch } from "../exec/launch.ts";
import type { Cage } from "../sandbox/cage.ts";
import { callEnvironment } from "./environment.ts";
import { programOf } from "./program.ts";
import type { CallContext, Tool } from "./tool.ts";
import { wishesOf } from "./wishes.ts";

export interface Execution {
  argv: string[];
  cwd: string;
  /** The whole environment. */
  env: Record<string, string>;
  stdin: string;
  launch: Launch;
}

/**
 * @param cage what confines it; undefined = nothing, since somebody has allowed that
 * @throws Fault if the tool's file is no program
 */
export function executionOf(
  tool: Tool,
  args: Record<string, unknown>,
  ctx: CallContext,
  callId: string,
  cage: Cage | undefined,
): Execution {
  return {
    argv: programOf(tool.path),
    cwd: ctx.cwd,
    env: callEnvironment(tool, args, ctx, callId, cage),
    stdin: JSON.stringify(args),
    launch: launchOf(ctx, cage, wishesOf(tool, args).detach),
  };
}

/**
 * How programs of a session become what they are, with the memory that its env allows them.
 * @param outlives the program goes on when the server ends
 */
export function launchOf(ctx: CallContext, cage: Cage | undefined, outlives = false): Launch {
  const memory = memoryLimit(ctx.env);
  return cage ? cage.launch({ memory, outlives }) : plainLaunch(memory);
}

/** OLLIE_TOOL_MEMORY in a session's env: MiB that each process of a tool may have. */
function memoryLimit(env: Record<string, string>): number | undefined {
  const mebibytes = Number(env.OLLIE_TOOL_MEMORY);
  return mebibytes > 0 ? mebibytes * 1024 * 1024 : undefined;
}
