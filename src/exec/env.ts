/** What every program's environment holds so that nothing waits for a person, asks a terminal or colours its output. */
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
const ownRuntime = ["BUN_OPTIONS", "BUN_BE_BUN"];

/** The environment less what must never be passed on. */
export function withoutRuntime(env: Record<string, string>): Record<string, string> {
  return Object.fromEntries(Object.entries(env).filter(([name]) => !ownRuntime.includes(name)));
}
