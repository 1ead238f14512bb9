/** What every program's environment holds so that nothing waits for a person, asks a terminal or colours its output. */
import { ownProgram } from "./own.ts";

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

/** The environment less what must not be passed on to `program`; least of all to this very one. */
export function passedOn(env: Record<string, string>, program: string): Record<string, string> {
  const refused = program === ownProgram() ? injecting : ownRuntime;
  return Object.fromEntries(Object.entries(env).filter(([name]) => !refused.test(name)));
}
