import { describe, expect, test } from "bun:test";
import { readFileSync, symlinkSync } from "node:fs";
import { join } from "node:path";
import { folder, Workshop } from "./helper.ts";

const shop = new Workshop();

describe("shell", () => {
  test("runs a command line in the working folder and gives its status", async () => {
    shop.write("here", "");
    const { ok, text } = await shop.call("shell", { command: "ls; echo 'a \"b\"' | tr a-z A-Z; exit 3" });
    expect(ok).toBe(false);
    expect(text).toBe('here\nA "B"\n[exit 3, unsandboxed]');
  });

  test("is bash where there is bash, else sh", async () => {
    expect(await shop.ok("shell", { command: 'a=(1 2 3); echo "$' + '{#a[@]}"' })).toBe("3");
    const bin = folder();
    for (const name of ["echo", "sh"]) symlinkSync(`/bin/${name}`, join(bin, name));
    const bare = new Workshop(undefined, { env: { PATH: bin } });
    expect(await bare.ok("shell", { command: 'echo "$0"; command -v bash || echo none' })).toBe(
      "/bin/sh\nnone",
    );
  });

  test("has no input and no terminal to wait at", async () => {
    expect(await shop.ok("shell", { command: "cat; read x || echo 'end of file'" })).toBe("end of file");
  });

  test("does not see its own arguments", async () => {
    expect(await shop.ok("shell", { command: "env | grep -c OLLIE_ARG_ || true", timeout: 50 })).toBe("0");
  });

  const awkward = [
    "quotes \" ' and \\ backslashes \\n \\\\",
    'looks like "command":"JSON" {"a":[1,2]}',
    "tabs\tand controls \x01\x1f\x7f \b\f",
    "$HOME `id` $(id) %s %d * ? [a]",
    "日本語 äöü 🙂 \u2028",
    "line one\n  line two\n\nline four",
  ];
  test.each([
    ["short", 1],
    ["longer than a variable may be", 60],
    ["longer than a program's argument may be", 1500],
  ])("takes any text as it is when the command is %s", async (_name, times) => {
    const text = Array.from({ length: times }, () => awkward.join("\n")).join("\n");
    await shop.ok("shell", { command: `cat >out <<'EOF'\n${text}\nEOF\necho done` });
    expect(readFileSync(shop.path("out"), "utf8")).toBe(`${text}\n`);
  });

  test("takes a carriage return too", async () => {
    const filler = `: ${"x".repeat(5000)}\n`;
    await shop.ok("shell", { command: `${filler}printf '%s' 'a\r\nb\r' >out` });
    expect(readFileSync(shop.path("out"), "utf8")).toBe("a\r\nb\r");
  });

  test("asks for more or less time in seconds, never less than none", async () => {
    const { how, text } = await shop.call("shell", { command: "echo a; sleep 60", timeout: 0.3 });
    expect(how).toBe("timedOut");
    expect(text).toContain("killed after 0.3 s (not a crash");
    expect((await shop.call("shell", { command: "echo a", timeout: -1 })).how).toBe("refused");
  });

  test("git asks for nothing and edits nothing", async () => {
    const command = `git init -q repo && cd repo && git config user.email a@b && git config user.name n && echo 1 >f && git add f
      git commit 2>&1 | tail -1; git commit -qm one && git rebase -i --root 2>&1 | tail -1; git log --oneline | wc -l`;
    const text = await shop.ok("shell", { command });
    expect(text).toContain("Aborting commit due to empty commit message");
    expect(text).toContain("problem with the editor");
    expect(text).toEndWith("1");
  });
});

describe("the others that need no file", () => {
  test("reasoning_think takes a thought of any length", async () => {
    expect(await shop.ok("reasoning_think", { thought: "x".repeat(20_000) })).toBe("Noted.");
  });

  test("tool_help shows what a sidecar says", async () => {
    const text = await shop.ok("tool_help", { name: "file_edit" });
    expect(text).toContain("Replace text in a file");
    expect(text).toContain("exactly (line ends aside)");
    expect(text).toContain('"required":["path","old","new"]');
    expect(await shop.no("tool_help", { name: "none" })).toContain('there is no tool "none"');
  });
});
