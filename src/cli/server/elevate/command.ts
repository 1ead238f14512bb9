import { elevateSocket } from "../../../elevate/socket.ts";
import { command, WrongUse } from "../../program.ts";
import { writeError, writeOut } from "../../stdio.ts";
import { whereabouts } from "../options.ts";
import type { Asker } from "./asker.ts";
import { kdialog, zenity } from "./dialogs.ts";
import { listenForQuestions } from "./listen.ts";
import { TerminalAsker } from "./terminal.ts";

const ways = ["kdialog", "zenity", "terminal"];

const options = {
  with: {
    type: "string",
    value: "WAY",
    help: `ask with ${ways.join(", ")}; left out: the first that works here`,
  },
  config: { type: "string", value: "DIR", help: "config folder, instead of ~/.config/ollie" },
} as const;

export const elevate = command({
  usage: "[--with WAY] [OPTIONS]",
  about:
    "Asks you whenever an agent wants to run something outside of the sandbox or as root: in a window, or on this terminal. Runs until\n" +
    "Ctrl-C and listens at OLLIE_ELEVATE_SOCKET. Without it, o approve and o tui ask as well.",
  options,
  words: [0, 0],
  async run({ values }) {
    const asker = askerFor(values.with);
    const path = elevateSocket(whereabouts(values).environment);
    const note = (text: string) => void writeError(`olliesrv elevate: ${text}\n`);
    const listener = await listenForQuestions(path, asker, note);
    await writeOut(`asks with ${asker.name} and listens at ${path}\n`);
    const status = await untilTold();
    listener.stop();
    return status;
  },
});

function askerFor(way: string | undefined): Asker {
  const desktop = process.env.DISPLAY || process.env.WAYLAND_DISPLAY;
  if (way !== undefined && !ways.includes(way))
    throw new WrongUse(`--with ${way}: there are ${ways.join(", ")}`);
  for (const dialog of [kdialog, zenity]) {
    if (way !== undefined && way !== dialog.name) continue;
    if (Bun.which(dialog.name) && desktop) return dialog;
    if (way !== undefined)
      throw new WrongUse(
        desktop
          ? `${way} is not installed`
          : `${way} needs a desktop: neither DISPLAY nor WAYLAND_DISPLAY is set`,
      );
  }
  if (process.stdin.isTTY && process.stdout.isTTY) return new TerminalAsker();
  throw new WrongUse("nobody can be asked here: there is no terminal, and no desktop with kdialog or zenity");
}

function untilTold(): Promise<number> {
  return new Promise((resolve) => {
    process.on("SIGINT", () => resolve(130));
    process.on("SIGTERM", () => resolve(0));
    process.on("SIGHUP", () => resolve(0));
    // The terminal is gone.
    process.stdin.on("end", () => resolve(0));
  });
}
