/** A real terminal: tmux on a socket of its own, typed into with send-keys and looked at with capture-pane. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { run, succeeded, until } from "./harness.ts";

export class Terminal {
  private constructor(
    private readonly env: Record<string, string>,
    private readonly folder: string,
  ) {}

  /** Opens one with a shell in it, whose environment is `env` and which knows nothing of the tmux around it. */
  static async open(
    env: Record<string, string>,
    cwd: string,
    size = { columns: 80, rows: 24 },
  ): Promise<Terminal> {
    // The socket's path must be short, and another tmux within this terminal must not find this one.
    const folder = mkdtempSync(join(tmpdir(), "ollie-tmux-"));
    const terminal = new Terminal(
      { ...env, PATH: process.env.PATH!, TERM: "xterm-256color", TMUX_TMPDIR: folder },
      folder,
    );
    const { columns, rows } = size;
    // The terminal's own tmux need not be on the PATH of what runs in it.
    const shell = `exec env -u TMUX -u TMUX_PANE PATH='${env.PATH}' PS1='ready> ' '${Bun.which("dash")}'`;
    succeeded(
      await terminal.tmux("new-session", "-d", "-x", `${columns}`, "-y", `${rows}`, "-c", cwd, shell),
    );
    await terminal.shows("ready>");
    return terminal;
  }

  /** A command to the tmux that is the terminal. */
  tmux(...args: string[]) {
    return run(["tmux", "-L", "outer", "-f", "/dev/null", ...args], this.env);
  }

  /** Keys by their tmux names, or texts. */
  async type(...keys: string[]): Promise<void> {
    succeeded(await this.tmux("send-keys", ...keys));
  }

  /** A text, as it is, and Enter. */
  async line(text: string): Promise<void> {
    if (text !== "") succeeded(await this.tmux("send-keys", "-l", text));
    await this.type("Enter");
  }

  /** The screen; with `colours` as escape sequences. */
  async screen(colours = false): Promise<string> {
    return succeeded(await this.tmux("capture-pane", "-p", ...(colours ? ["-e"] : [])));
  }

  async resize(columns: number, rows: number): Promise<void> {
    succeeded(await this.tmux("resize-window", "-x", `${columns}`, "-y", `${rows}`));
  }

  /** Waits until the screen fits. @throws Error that holds the screen */
  async shows(what: string | RegExp, colours = false): Promise<string> {
    const fits = (text: string) => (typeof what === "string" ? text.includes(what) : what.test(text));
    try {
      return await until(`the screen shows ${what}`, async () => {
        const text = await this.screen(colours);
        return fits(text) ? text : undefined;
      });
    } catch (error) {
      throw new Error(`${(error as Error).message}:\n${await this.screen(colours)}`);
    }
  }

  async close(): Promise<void> {
    // What a test left within ends with the terminal.
    await run(["tmux", "kill-server"], this.env);
    await this.tmux("kill-server");
    rmSync(this.folder, { recursive: true, force: true });
  }
}
