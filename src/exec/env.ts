/** What every program's environment holds so that nothing waits for a person, asks a terminal or colours its output. */
import { ownCommand } from "./own.ts";

export const unattended: Readonly<Record<string, string>> = {
  TERM: "dumb",
  NO_COLOR: "1",
  PAGER: "cat",
  GIT_PAGER: "cat",
  GIT_TERMINAL_PROMPT: "0",
  GIT_EDITOR: "true",
  // `true` here would silently run a rebase that somebody meant to edit.
  GIT_SEQUENCE_EDITOR: "false",
  DEBIAN_FRONTEND: "noninteractive",
};

/** Of this program's own run-time: BUN_OPTIONS runs code in any binary made with Bun, BUN_BE_BUN turns it into the bare `bun`. */
const ownRuntime = /^BUN_(?:OPTIONS|BE_BUN)$/;
/** What else puts code into a process, or takes it from elsewhere. Programs may be meant to have it, this one is not. */
const injecting =
  /^(?:BUN_|JSC_|LD_|DYLD_)|^(?:NODE_(?:OPTIONS|PATH|CHANNEL_FD|COMPILE_CACHE)|GCONV_PATH|GLIBC_TUNABLES)$/;

/**
 * For this very program, which runs tools that are done within some milliseconds: what its engine compiles, collects and makes ready
 * meanwhile, on other threads, costs more than it saves. What runs long is compiled all the same, only later.
 */
export const shortLived: Readonly<Record<string, string>> = {
  BUN_JSC_thresholdForJITAfterWarmUp: "5000",
  BUN_JSC_thresholdForOptimizeAfterWarmUp: "30000",
  BUN_JSC_thresholdForOptimizeSoon: "30000",
  BUN_JSC_useConcurrentGC: "0",
  BUN_JSC_numberOfGCMarkers: "1",
  BUN_JSC_useWarmUpMarkedBlocks: "0",
};

/** The environment less what must not be passed on to `program`; least of all to this very one. */
export function passedOn(env: Record<string, string>, program: string): Record<string, string> {
  const own = program === ownCommand()[0];
  const refused = own ? injecting : ownRuntime;
  const kept = Object.entries(env).filter(([name]) => !refused.test(name));
  return { ...Object.fromEntries(kept), ...(own && shortLived) };
}
