import { describe, expect, test } from "bun:test";
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { plainLaunch } from "../../src/exec/launch.ts";
import { Fault } from "../../src/fault.ts";
import { folder, pidsIn, runs, sh, until } from "./helper.ts";

describe("a program", () => {
  test("gets its input and end of file, and gives its output and status", async () => {
    const result = await sh("cat; echo done; exit 3", { stdin: "in\n" });
    expect(result).toMatchObject({ text: "in\ndone\n", code: 3, ended: "exit", bytes: 8 });
    expect(result.leftovers).toBeUndefined();
  });

  test("that reads no input does not care how much there is", async () => {
    expect(await sh("exit 0", { stdin: "x".repeat(5_000_000) })).toMatchObject({ code: 0, text: "" });
  });

  test("that prints nothing and fails ends at once", async () => {
    expect(await sh("exit 1")).toMatchObject({ code: 1, text: "", ended: "exit" });
  });

  test("has its errors under a line of their own", async () => {
    expect((await sh("printf out; echo err >&2")).text).toBe("out\n[stderr]\nerr\n");
    expect((await sh("echo err >&2")).text).toBe("[stderr]\nerr\n");
  });

  test("that a signal ended says which", async () => {
    const result = await sh("kill -SEGV $$");
    expect(result).toMatchObject({ signal: "SIGSEGV", ended: "exit" });
    expect(result.code).toBeUndefined();
  });

  test("inherits nothing, and is told not to colour, page or ask", async () => {
    process.env.OLLIE_TEST_SECRET = "s3cret";
    const { text } = await sh("env", {
      env: { PATH: process.env.PATH!, MINE: "1", BUN_OPTIONS: "--x", BUN_BE_BUN: "1" },
    });
    delete process.env.OLLIE_TEST_SECRET;
    expect(text).toContain("MINE=1\n");
    expect(text).not.toContain("s3cret");
    expect(text).not.toContain("BUN_");
    for (const line of ["TERM=dumb", "NO_COLOR=1", "PAGER=cat", "GIT_TERMINAL_PROMPT=0"])
      expect(text).toContain(line);
    for (const line of ["GIT_EDITOR=true", "GIT_SEQUENCE_EDITOR=false", "DEBIAN_FRONTEND=noninteractive"]) {
      expect(text).toContain(line);
    }
  });

  test("has no terminal, and /dev/stdout can be opened", async () => {
    const { text } = await sh("(: </dev/tty) 2>/dev/null || echo none; echo there >/dev/stdout");
    expect(text).toBe("none\nthere\n");
  });

  test("has the usual file limit and ignores no signal", async () => {
    const { text } = await sh("ulimit -S -n; grep SigIgn /proc/self/status; cat /proc/self/oom_score_adj");
    expect(text).toBe("1024\nSigIgn:\t0000000000000000\n500\n");
  });

  test("can be held to an amount of memory", async () => {
    const hungry = "head -c 400000000 /dev/zero | tail -c 399999999 | wc -c";
    expect((await sh(hungry, { launch: plainLaunch(100 * 1024 * 1024) })).text).not.toContain("399999999");
    expect((await sh("echo small", { launch: plainLaunch(100 * 1024 * 1024) })).text).toBe("small\n");
  });

  test("that does not exist, or a folder that does not, is a Fault that names it", async () => {
    await expect(sh("", { argv: ["/nowhere/tool"] })).rejects.toThrow("/nowhere/tool");
    await expect(sh("", { cwd: "/nowhere" })).rejects.toThrow("working folder");
    await expect(sh("", { argv: ["/"] })).rejects.toBeInstanceOf(Fault);
    const plain = join(folder(), "plain");
    writeFileSync(plain, "#!/bin/sh\n");
    await expect(sh("", { argv: [plain] })).rejects.toThrow(/permission denied/i);
  });

  test("gets its arguments as they are", async () => {
    const words = ["$HOME", "a b", "'", '"', "*", ""];
    const { text } = await sh("", { argv: ["/bin/sh", "-c", `printf '<%s>' "$@"`, "name", ...words] });
    expect(text).toBe(words.map((word) => `<${word}>`).join(""));
  });
});

describe("what a program leaves behind", () => {
  const cases: [string, string][] = [
    ["a background child that holds the output", "sleep 47 & echo $! >PIDS; echo done"],
    ["a background child that does not", "sleep 47 >/dev/null 2>&1 & echo $! >PIDS; echo done"],
    [
      "a child in a session of its own",
      "setsid sh -c 'echo $$ >PIDS; exec sleep 48' & while ! [ -s PIDS ]; do :; done; echo done",
    ],
    [
      "one that dropped its environment as well",
      "setsid env -i sh -c 'echo $$ >PIDS; exec sleep 48' & while ! [ -s PIDS ]; do :; done; echo done",
    ],
    [
      "a daemon with children",
      "setsid sh -c 'sleep 48 & echo $$ $! >PIDS; wait' </dev/null >/dev/null 2>&1 & while ! [ -s PIDS ]; do :; done; echo done",
    ],
    [
      "one that ignores TERM",
      `sh -c 'trap "" TERM; echo $$ >PIDS; while :; do sleep 1; done' & while ! [ -s PIDS ]; do :; done; echo done`,
    ],
  ];
  test.each(cases)("%s neither holds up the call nor survives it", async (_name, command) => {
    const file = join(folder(), "pids");
    const result = await sh(command.replaceAll("PIDS", file));
    expect(result).toMatchObject({ text: "done\n", code: 0, ended: "exit" });
    const pids = pidsIn(file);
    expect(pids.length).toBeGreaterThan(0);
    expect(result.leftovers).toContain(`pid ${pids[0]}`);
    await until("the processes are gone", () => !pids.some(runs));
  });

  test("still has its last words heard", async () => {
    expect((await sh("(sleep 0.05; echo late) & echo early")).text).toBe("early\nlate\n");
  });

  test("belongs to one call only: a neighbour's processes are left alone", async () => {
    const file = join(folder(), "pid");
    const neighbour = sh(`setsid sh -c 'echo $$ >${file}; exec sleep 1' & wait; echo unharmed`);
    await until("the neighbour has started", () => pidsIn(file).length > 0);
    await sh("sleep 40 & echo");
    expect((await neighbour).text).toBe("unharmed\n");
  });
});

describe("time and cancellation", () => {
  test("a program that takes too long is ended with its children, and what it printed stays", async () => {
    const file = join(folder(), "pids");
    const result = await sh(`echo begun; sleep 300 & echo $! $$ >${file}; sleep 300`, { timeout: 300 });
    expect(result).toMatchObject({ ended: "timeout", text: "begun\n" });
    await until("everything is gone", () => !pidsIn(file).some(runs));
  });

  test("a program that ignores TERM is killed", async () => {
    expect(await sh("trap '' TERM; while :; do sleep 1; done", { timeout: 200 })).toMatchObject({
      ended: "timeout",
      signal: "SIGKILL",
    });
  });

  test("a program that tidies up on TERM may do so", async () => {
    const result = await sh("trap 'echo tidied; exit 0' TERM; while :; do sleep 0.05; done", {
      timeout: 200,
    });
    expect(result).toMatchObject({ code: 0, ended: "timeout" });
    expect(result.text).toStartWith("tidied\n");
  });

  test("cancelling ends the whole tree", async () => {
    const file = join(folder(), "pids");
    const controller = new AbortController();
    const call = sh(`sh -c 'sleep 300 & echo $$ $! >${file}; sleep 300'`, { signal: controller.signal });
    await until("the children run", () => pidsIn(file).length === 2);
    controller.abort();
    expect((await call).ended).toBe("cancelled");
    await until("everything is gone", () => !pidsIn(file).some(runs));
  });

  test("a call that is cancelled before it starts runs nothing", async () => {
    const file = join(folder(), "made");
    const result = await sh(`: >${file}`, { signal: AbortSignal.abort() });
    expect(result.ended).toBe("cancelled");
    expect(existsSync(file)).toBe(false);
  });
});

describe("output", () => {
  test("beyond 16 KiB shows head and tail, and all of it is on disk", async () => {
    const spill = join(folder(), "deep", "out");
    const result = await sh("echo first; seq 100000; echo the error at the end", { spill });
    expect(Buffer.byteLength(result.text)).toBeLessThanOrEqual(16 * 1024);
    expect(result.text).toStartWith("first\n1\n2\n");
    expect(result.text).toEndWith("99999\n100000\nthe error at the end\n");
    expect(result.text).toMatch(/\n\[… [\d,]+ bytes left out here; the whole output is in .*\/out\]\n/);
    expect(result.spilled).toBe(spill);
    expect(readFileSync(spill, "utf8").split("\n").length).toBe(100_003);
  });

  test("that fits leaves no file", async () => {
    const spill = join(folder(), "out");
    expect((await sh("seq 2000", { spill })).spilled).toBeUndefined();
    expect((await sh(`for i in $(seq 20000); do printf '%s %%\\r' $i; done`, { spill })).text).toBe(
      "20000 %",
    );
    expect(existsSync(spill)).toBe(false);
  });

  test("of 200 MB keeps its status, its tail and 10 MiB on disk, and costs no memory", async () => {
    const script = join(import.meta.dir, "flood.ts");
    const child = Bun.spawn([process.execPath, script, folder()], { stdout: "pipe", stderr: "inherit" });
    const report = JSON.parse(await child.stdout.text());
    expect(report).toMatchObject({
      code: 7,
      bytes: 200 * 1024 * 1024 + 4,
      tail: "end\n",
      kept: 10 * 1024 * 1024,
    });
    expect(report.peak).toBeLessThan(200 * 1024 * 1024);
  }, 60_000);

  test("of one endless line shows its beginning", async () => {
    const result = await sh("head -c 20000000 /dev/zero | tr '\\0' a; echo; echo after");
    expect(result.text).toMatch(
      /^a{2000}… \[\+19,998,000 characters\]\nafter\n\[long lines are cut; the whole output is in /,
    );
    expect(result.bytes).toBe(20_000_007);
  });

  test("is filtered before it is cut, each stream by itself", async () => {
    let made = 0;
    const shown: string[] = [];
    const filter = () => {
      const name = ++made;
      return { push: (text: string) => text.replaceAll("secret", "-----"), end: () => `filter ${name}\n` };
    };
    const { text } = await sh("seq -f 'secret %g' 5000; echo a secret error >&2", {
      filter,
      onOutput: (text) => shown.push(text),
    });
    expect(made).toBe(2);
    expect(text).toStartWith("----- 1\n");
    expect(text).toContain("----- 5000\nfilter 1\n[stderr]\na ----- error\nfilter 2\n");
    expect(text + shown.join("")).not.toContain("secret");
  });

  test("that is binary is described and saved", async () => {
    const spill = join(folder(), "out");
    const { text } = await sh("head -c 2000 /bin/ls", { spill });
    expect(text).toBe(`[binary output, 2,000 bytes, saved to ${spill}]`);
    expect(readFileSync(spill)).toEqual(readFileSync("/bin/ls").subarray(0, 2000));
  });

  test("that is a text with NULs is shown as one", async () => {
    expect((await sh("printf 'a\\0b\\0'")).text).toBe("a␀b␀");
    const names = await sh("seq -f /srv/name-%g 300 | tr '\\n' '\\0'");
    expect(names.text).toContain("/srv/name-7␀/srv/name-8␀");
  });

  test("in another encoding, or cut in a character, is still valid text", async () => {
    const { text } = await sh("printf 'caf\\351 \\360'; sleep 0.05; printf '\\304\\343\\272\\303 gbk'");
    expect(text).toContain("caf\uFFFD");
    expect(text).toEndWith("gbk");
    expect(text.isWellFormed()).toBe(true);
  });

  test("whose characters arrive byte by byte is put together", async () => {
    expect(
      (
        await sh(
          "printf '\\303'; sleep 0.05; printf '\\244'; printf '\\360\\237'; sleep 0.05; printf '\\231\\202'",
        )
      ).text,
    ).toBe("ä🙂");
  });

  test("loses its colours, titles and progress", async () => {
    const { text } = await sh(`printf '\\033[31mred\\033[0m\\r\\nD\\n\\033]0;t\\007 1%%\\r100%%\\n'`);
    expect(text).toBe("red\nD\n100%\n");
  });

  test("leaves room for stderr, however long stdout is", async () => {
    const { text } = await sh("seq 100000; seq 100000 >&2; echo the reason >&2");
    expect(text).toContain("\n[stderr]\n1\n2\n");
    expect(text).toEndWith("the reason\n");
    expect(Buffer.byteLength(text)).toBeLessThanOrEqual(16 * 1024);
  });

  test("is shown as it comes, up to a limit", async () => {
    const seen: string[] = [];
    const first = Promise.withResolvers<void>();
    const controller = new AbortController();
    const call = sh("echo one; sleep 300", {
      signal: controller.signal,
      onOutput: (text) => {
        seen.push(text);
        first.resolve();
      },
    });
    await first.promise;
    controller.abort();
    await call;
    expect(seen.join("")).toBe("one\n");

    let shown = "";
    await sh("seq 100000", { onOutput: (text) => (shown += text) });
    expect(shown.length).toBeLessThan(70_000);
    expect(shown).toEndWith("[… more output; the result shows its head and tail]\n");
  });

  test("that the disk does not take is still a result, and it says so", async () => {
    const result = await sh("seq 100000; exit 4", { spill: "/dev/full/out" });
    expect(result.code).toBe(4);
    expect(result.text).toContain("100000\n");
    expect(result.text).toMatch(/the whole output is lost: /);
    expect(result.spilled).toBeUndefined();
  });
});
