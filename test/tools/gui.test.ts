/** The tools for the desktop, on an X server of their own where there is one, and with programs that only write down how they were called. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { createRegistry } from "../../src/tools/registry.ts";
import { lacksPrograms } from "../needs.ts";
import { runTool as call, dir, fakeProgram as fake, runtime } from "./direct.ts";
import { shippedTools } from "./helper.ts";

describe("the catalogue", () => {
  const tools = (binaries: string[], env: Record<string, string> = {}) => {
    const host = {
      os: "linux",
      arch: "x64",
      env,
      hasBinary: (name: string) => binaries.includes(name),
      hasFile: () => false,
    };
    const all = createRegistry(shippedTools, host).list();
    return all.filter(({ name }) => name.startsWith("gui_"));
  };
  const program = (binaries: string[], env?: Record<string, string>) =>
    tools(binaries, env).map(({ path }) => path.slice(shippedTools.length + 1));

  test("has them where there is a program for them, the better one first", () => {
    expect(program([])).toEqual([]);
    expect(program(["notify-send"])).toEqual(["gui_notify_send"]);
    expect(program(["zenity"])).toEqual(["gui_dialog_zenity.ts"]);
    expect(program(["zenity", "kdialog"])).toEqual(["gui_dialog_kdialog.ts"]);
    expect(program(["import"])).toEqual(["gui_screenshot_import"]);
    expect(program(["import", "scrot", "grim"])).toEqual(["gui_screenshot_scrot"]);
    expect(program(["scrot", "spectacle"])).toEqual(["gui_screenshot_spectacle"]);
    expect(program(["spectacle", "grim"], { WAYLAND_DISPLAY: "wayland-0" })).toEqual(["gui_screenshot_grim"]);
  });

  test("asks the user first, always, and has them run where the user is", () => {
    for (const tool of tools(["notify-send", "zenity", "scrot"]))
      expect(tool).toMatchObject({ elevated: true, remote: false });
  });
});

describe("gui_notify", () => {
  test("shows words as they are: no options, no markup", async () => {
    const { said, ...env } = fake("notify-send", "");
    const args = { title: "--icon=x", text: "a < b & <b>c</b>", urgency: "critical" };
    expect(await call("gui_notify_send", args, env)).toMatchObject({ output: "Shown.\n", status: 0 });
    expect(said()).toEqual([
      "--app-name=ollie",
      "--urgency=critical",
      "--",
      "--icon=x",
      "a &lt; b &amp; &lt;b&gt;c&lt;/b&gt;",
    ]);
  });

  test("fails where nobody shows it", async () => {
    const { PATH } = fake("notify-send", "echo 'no notification daemon' >&2; exit 1");
    const { output, errors, status } = await call("gui_notify_send", { title: "x" }, { PATH });
    expect([output, errors, status]).toEqual(["", "no notification daemon\n", 1]);
  });
});

describe("gui_dialog with kdialog", () => {
  const ask = (args: Record<string, unknown>, { PATH }: { PATH: string }, DISPLAY = ":nowhere") =>
    call("gui_dialog_kdialog.ts", args, { PATH, DISPLAY });

  test("says who asks, and passes no text for an option, an escape or markup", async () => {
    const window = fake("kdialog", "echo '-b'");
    const args = { kind: "choice", text: "-x \\n <b>?", choices: ["a", "-b", " two\nlines "] };
    expect((await ask(args, window)).output).toBe("The user answers: -b\n");
    expect(window.said()).toEqual([
      "--title=ollie: lab, helper",
      "--menu=<qt>-x \\\\n &lt;b&gt;?</qt>",
      ...["--", "a", "a", "-b", "-b", "two lines", "two lines"],
    ]);
  });

  test("tells what was answered, and that nothing was", async () => {
    const answers = async (kind: string, then: string) =>
      (await ask({ kind, text: "?", choices: ["a"] }, fake("kdialog", then))).output.trim();
    expect(await answers("yesno", "exit 0")).toBe("The user answers: yes");
    expect(await answers("yesno", "exit 1")).toBe("The user answers: no");
    expect(await answers("input", "printf 'two  words\\n'")).toBe("The user answers: two  words");
    expect(await answers("input", "exit 1")).toBe("The user has closed the window without an answer.");
    expect(await answers("choice", "exit 1")).toBe("The user has closed the window without an answer.");
    expect(await answers("message", "exit 0")).toBe("The user has closed the message.");
  });

  test("fails without a desktop, without choices, and where no window comes up", async () => {
    const broken = fake("kdialog", "echo 'qt.qpa.xcb: could not connect to display' >&2; exit 1");
    const args = { kind: "yesno", text: "?" };
    expect((await ask(args, broken)).errors).toContain("could not connect to display");
    expect((await ask(args, broken, "")).errors).toContain("there is no desktop here");
    expect((await ask({ kind: "choice", text: "?" }, broken)).errors).toContain('"choices" is missing');
    const crashed = await ask(args, fake("kdialog", "kill -ABRT $$"));
    expect([crashed.status, crashed.errors]).toEqual([1, expect.stringContaining("kdialog failed")]);
  });
});

const needed = ["Xvfb", "scrot", "import", "zenity", "xdotool"];

describe.skipIf(lacksPrograms(...needed))("on an X server", () => {
  let server: Bun.Subprocess<"ignore", "pipe", "ignore">;
  let display = "";
  beforeAll(async () => {
    server = Bun.spawn(["Xvfb", "-displayfd", "1", "-screen", "0", "640x480x24", "-nolisten", "tcp"], {
      stdin: "ignore",
      stdout: "pipe",
      stderr: "ignore",
    });
    const { value } = await server.stdout.getReader().read();
    display = `:${Buffer.from(value!).toString().trim()}`;
  });
  afterAll(() => server.kill());

  const onDisplay = (program: string, args: Record<string, unknown>, env: Record<string, string> = {}) =>
    call(program, args, { DISPLAY: display, ...env });

  test.each(["gui_screenshot_scrot", "gui_screenshot_import"])("%s takes a picture", async (program) => {
    const { output, status } = await onDisplay(program, { delay: 0 });
    expect(status).toBe(0);
    const [, path, size] = /^(\S+): 640 x 480 pixels, (\d+) bytes, PNG\n/.exec(output)!;
    expect(dirname(path!)).toBe(dir);
    const picture = readFileSync(path!);
    expect(picture.length).toBe(Number(size));
    expect(picture.subarray(0, 4).toString("latin1")).toBe("\x89PNG");
    expect(output).toContain("pictures are not shown to you");
    expect(readdirSync(runtime)).toEqual([]);
  });

  test("a picture never replaces a file, and fails in words", async () => {
    // Every file it could write to exists, as a link to something dear.
    const trap = join(dir, "trap");
    mkdirSync(trap);
    const dear = join(dir, "dear");
    writeFileSync(dear, "precious");
    const { PATH } = fake("date", "echo fixed");
    const script = `TMPDIR=${trap}; for pid in $(seq $(($$ - 5)) $(($$ + 200))); do ln -sf ${dear} ${trap}/screenshot-fixed-$pid.png; done; exec ${shippedTools}/gui_screenshot_scrot`;
    const shot = Bun.spawnSync(["sh", "-c", script], {
      env: { ...process.env, PATH, DISPLAY: display, TMPDIR: trap, XDG_RUNTIME_DIR: runtime },
    });
    expect(shot.exitCode).not.toBe(0);
    expect(readFileSync(dear, "utf8")).toBe("precious");
    const none = await call("gui_screenshot_scrot", {});
    expect([none.status, none.errors]).toEqual([1, expect.stringContaining("there is no desktop here")]);
    const lost = await call("gui_screenshot_import", {}, { DISPLAY: ":nowhere" });
    expect([lost.status, lost.output]).toEqual([1, ""]);
    expect(readdirSync(runtime)).toEqual([]);
  });

  /** Presses keys once a window is there and has the focus, until the tool has its answer. */
  async function answered(args: Record<string, unknown>, ...keys: string[]): Promise<string> {
    const dialog = onDisplay("gui_dialog_zenity.ts", args);
    let done = false;
    dialog.finally(() => {
      done = true;
    });
    const x = (...words: string[]) =>
      Bun.spawnSync(["xdotool", ...words], { env: { ...process.env, DISPLAY: display }, timeout: 5000 });
    const window = ["search", "--onlyvisible", "--name", "ollie: lab, helper"];
    // Without the focus from the first key on, the answer would be a part of what is typed.
    for (; !done; await Bun.sleep(300)) if (x(...window, "windowfocus", "--sync").success) x("key", ...keys);
    const { output, errors } = await dialog;
    return output || errors;
  }

  test("gui_dialog_zenity.ts asks", async () => {
    expect(await answered({ kind: "yesno", text: "-q <i> a & b \\n?" }, "Return")).toBe(
      "The user answers: yes\n",
    );
    expect(await answered({ kind: "yesno", text: "?" }, "Escape")).toBe("The user answers: no\n");
    expect(await answered({ kind: "message", text: "<b>" }, "Return")).toBe(
      "The user has closed the message.\n",
    );
    expect(await answered({ kind: "input", text: "a_b" }, "h", "i", "Return")).toBe("The user answers: hi\n");
    const choice = { kind: "choice", text: "<which>?", choices: ["-one", "two <b>"] };
    expect(await answered(choice, "Down", "Down", "Return")).toMatch(
      /^The user answers: (?:-one|two <b>)\n$/,
    );
    expect(await answered(choice, "Escape")).toBe("The user has closed the window without an answer.\n");
  });
});
