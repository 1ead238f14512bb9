import { describe, expect, test } from "bun:test";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { prepare } from "../../src/tools/prepare.ts";
import { createRegistry } from "../../src/tools/registry.ts";
import { dir, fakeProgram, runTool } from "./direct.ts";
import { shippedTools } from "./helper.ts";

/** The tool as a host has it that has these programs and files. */
function toolOn(binaries: string[], files: string[] = []) {
  const host = {
    os: "linux",
    arch: "x64",
    env: {},
    hasBinary: (name: string) => binaries.includes(name),
    hasFile: (path: string) => files.includes(path),
  };
  return createRegistry(shippedTools, host).get("system_logs");
}

describe("system_logs", () => {
  test("is what the host has for it, and nowhere else", () => {
    const properties = (tool: ReturnType<typeof toolOn>) => Object.keys(tool?.schema.properties ?? {});
    const journald = toolOn(["journalctl", "dmesg"], ["/var/log/syslog"]);
    expect(journald).toMatchObject({
      path: `${shippedTools}/system_logs_journald`,
      elevated: false,
      sudo: false,
    });
    expect(properties(journald)).toEqual(["unit", "since", "until", "lines", "priority", "grep"]);
    const syslog = toolOn(["dmesg"], ["/var/log/messages"]);
    expect(syslog).toMatchObject({ path: `${shippedTools}/system_logs_syslog`, sudo: false, readOnly: true });
    expect(properties(syslog)).toEqual(["lines", "grep"]);
    expect(toolOn(["dmesg"])).toMatchObject({ path: `${shippedTools}/system_logs_dmesg`, sudo: true });
    expect(toolOn([])).toBeUndefined();
  });

  test("refuses what is no priority and no number", () => {
    const call = (args: object) =>
      prepare({ id: "1", name: "system_logs", args: JSON.stringify(args) }, [toolOn(["journalctl"])!]);
    expect(call({ lines: 5, priority: "err" })).toMatchObject({ ok: true });
    for (const args of [{ priority: "--file=/x" }, { lines: "-1" }, { lines: 1e9 }, { output: "cat" }])
      expect(call(args)).toMatchObject({ ok: false });
  });
});

describe("with journald", () => {
  test("no value becomes an option", async () => {
    const { said, PATH } = fakeProgram("journalctl", "echo entry");
    const args = {
      unit: "--vacuum-size=1",
      since: "-1h",
      until: "now",
      lines: 7,
      priority: "err",
      grep: "--flush",
    };
    expect(await runTool("system_logs_journald", args, { PATH })).toMatchObject({
      output: "entry\n",
      status: 0,
    });
    expect(said()).toEqual([
      "--no-pager",
      "--output=short-iso",
      "--lines=7",
      "--unit=--vacuum-size=1",
      "--since=-1h",
      "--until=now",
      "--priority=err",
      "--case-sensitive=no",
      "--grep=--flush",
    ]);
    await runTool("system_logs_journald", {}, { PATH });
    expect(said()).toEqual(["--no-pager", "--output=short-iso", "--lines=100"]);
  });

  test("no entry that matches is no failure, a mistake is one", async () => {
    const none = fakeProgram("journalctl", "echo '-- No entries --'; exit 1");
    expect(await runTool("system_logs_journald", { grep: "x" }, { PATH: none.PATH })).toEqual({
      output: "-- No entries --\n",
      errors: "",
      status: 0,
    });
    const wrong = fakeProgram("journalctl", "echo 'Failed to parse timestamp: x' >&2; exit 1");
    for (const args of [{ since: "x" }, { since: "x", grep: "y" }])
      expect(await runTool("system_logs_journald", args, { PATH: wrong.PATH })).toEqual({
        output: "",
        errors: "Failed to parse timestamp: x\n",
        status: 1,
      });
  });
});

describe("with a log file", () => {
  const log = join(dir, "messages");
  writeFileSync(log, `${Array.from({ length: 500 }, (_, i) => `host kernel: -v event ${i}`).join("\n")}\n`);
  const read = (args: Record<string, unknown>, files = [join(dir, "none"), log]) =>
    runTool("system_logs_syslog", args, {}, files);

  test("shows its last lines, all or those that match", async () => {
    const all = (await read({})).output.trim().split("\n");
    expect([all.length, all[0], all.at(-1)]).toEqual([
      100,
      "host kernel: -v event 400",
      "host kernel: -v event 499",
    ]);
    expect((await read({ lines: 2, grep: "KERNEL.* 1[0-9]$" })).output).toBe(
      "host kernel: -v event 18\nhost kernel: -v event 19\n",
    );
    expect((await read({ grep: "-v event 77$" })).output).toBe("host kernel: -v event 77\n");
  });

  test("that nothing matches is no failure; a wrong pattern and a missing file are", async () => {
    expect(await read({ grep: "nowhere" })).toEqual({ output: "", errors: "", status: 0 });
    expect(await read({ grep: "(" })).toMatchObject({
      output: "",
      status: 2,
      errors: expect.stringContaining("grep"),
    });
    expect(await read({}, [join(dir, "none")])).toMatchObject({ status: 1, output: "" });
  });
});

test("with dmesg, the kernel's messages or why they cannot be had", async () => {
  const { PATH } = fakeProgram("dmesg", "printf '[1] usb 1\\n[2] eth0 up\\n[3] usb 2\\n'");
  expect((await runTool("system_logs_dmesg", { grep: "usb", lines: 1 }, { PATH })).output).toBe(
    "[3] usb 2\n",
  );
  const denied = fakeProgram("dmesg", "echo 'Operation not permitted' >&2; exit 1");
  expect(await runTool("system_logs_dmesg", {}, { PATH: denied.PATH })).toEqual({
    output: "",
    errors: "Operation not permitted\n",
    status: 1,
  });
});
