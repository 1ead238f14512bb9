/** Hosts that never come to run the command: what the error says. */
import { afterAll, afterEach, describe, expect, setDefaultTimeout, test } from "bun:test";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Markers } from "../../../src/remote/bootstrap/markers.ts";
import { visible } from "../../../src/remote/bootstrap/outcome.ts";
import { Host, programs } from "./local.ts";

setDefaultTimeout(60_000);

const folder = mkdtempSync(join(tmpdir(), "ollie-programs-"));
const small = programs(join(folder, "1"), { mib: 1 });
let host: Host | undefined;
afterEach(() => host?.remove());
afterAll(() => rmSync(folder, { recursive: true, force: true }));

/** What comes of it when the login shell is this script. */
async function insteadOf(script: string, stall = 10_000): Promise<{ code?: string; message: string }> {
  const shell = join(folder, "shell");
  writeFileSync(shell, `#!/bin/sh\n${script}\n`, { mode: 0o755 });
  host = new Host({ shell: [shell] });
  try {
    await host.boot({ programs: small, stall });
  } catch (error) {
    return error as { code?: string; message: string };
  }
  throw new Error("it was started");
}

describe("instead of a shell", () => {
  test.each([
    [
      "nologin",
      "echo This account is currently not available.; exit 1",
      "ssh.no_shell",
      "currently not available",
    ],
    ["false", "exit 1", "ssh.no_shell", "it said nothing"],
    ["sftp", "printf '\\000\\000\\003\\021'; exit 0", "ssh.forced", "it said: ^@^@^C^Q"],
    ["a forced command that ends well", "echo only forced", "ssh.forced", "it said: only forced"],
    ["rbash", "echo 'rbash: line 1: exec: restricted' >&2; exit 1", "ssh.no_shell", "a restricted one"],
    ["no /bin/sh", "echo 'exec: /bin/sh: not found' >&2; exit 127", "ssh.no_shell", "/bin/sh: not found"],
    ["killed", "kill -9 $$", "ssh.no_shell", "SIGKILL"],
    [
      "cmd.exe",
      "echo \"'exec' is not recognized as an internal or external command,\"; exit 1",
      "boot.unsupported",
      "Windows",
    ],
    [
      "PowerShell",
      "echo \"exec : The term 'exec' is not recognized as the name of a cmdlet\" >&2; exit 1",
      "boot.unsupported",
      "Windows",
    ],
  ])("%s", async (_, script, code, says) => {
    const { code: got, message } = await insteadOf(script);
    expect([got, message]).toEqual([code, expect.stringContaining(says)]);
    expect(message).not.toContain("\n");
  });

  test("something that prints for ever is cut off", async () => {
    const { code, message } = await insteadOf("exec yes spam");
    expect(code).toBe("boot.no_marker");
    expect(message.length).toBeLessThan(400);
  });

  test("something that does nothing at all is given up", async () => {
    const { code } = await insteadOf("exec sleep 60", 300);
    expect(code).toBe("boot.stalled");
  });

  test("of what it said, the first 200 characters are shown, on one line", async () => {
    const { message } = await insteadOf("yes 'a long story' | head -n 100; exit 3");
    expect(message).toContain("a long story a long story");
    expect(message.length).toBeLessThan(500);
  });
});

test("another machine than those that there are programs for is named", async () => {
  const uname = join(folder, "uname");
  const cases = [
    ["Linux riscv64", "the host is Linux riscv64, and here is ollie-remote only for linux-x64, linux-arm64"],
    ["Darwin arm64", "the host runs Darwin arm64; ollie works on Linux hosts"],
  ] as const;
  for (const [machine, says] of cases) {
    writeFileSync(uname, `#!/bin/sh\necho ${machine}\n`, { mode: 0o755 });
    host = new Host({ env: { PATH: `${folder}:/usr/bin:/bin` } });
    await expect(host.boot({ programs: small })).rejects.toMatchObject({
      code: "boot.unsupported",
      message: expect.stringContaining(says),
    });
    host.remove();
  }
});

test("a program that was launched and says nothing is an error where its output is read", async () => {
  host = new Host();
  const mute = join(folder, "mute");
  const path = programs(mute, { mib: 1, names: ["linux-x64"] });
  writeFileSync(
    join(path, "ollie-remote-linux-x64"),
    "#!/bin/sh\ncase $1 in --ok) echo ollie-remote 1 ;; *) echo broken >&2; exit 3 ;; esac\n",
  );
  const { stdout } = await host.boot({ programs: path });
  const read = async () => {
    for await (const _ of stdout);
  };
  await expect(read()).rejects.toThrow("ollie-remote does not start on the host (status 3): broken");
});

describe("markers", () => {
  async function* pieces(text: string, size: number) {
    for (let at = 0; at < text.length; at += size) yield Buffer.from(text.slice(at, at + size));
  }

  test.each([1, 2, 7, 1000])(
    "are found in pieces of %d bytes, and what comes behind is handed on",
    async (size) => {
      const stream = "noise\nOLLIE1 other hit x\n\nOLLIE1 abc wait\nmore\nOLLIE1 abc hit 12\n{}\nrest";
      const markers = new Markers(pieces(stream, size), "abc");
      expect([await markers.next(), await markers.next()]).toEqual([["wait"], ["hit", "12"]]);
      let rest = "";
      for await (const bytes of markers.rest()) rest += Buffer.from(bytes).toString();
      expect(rest).toBe("{}\nrest");
      expect(markers.noise).toBe("noise\nOLLIE1 other hit x\nmore");
    },
  );

  test("a stream without one ends, and is all noise", async () => {
    const markers = new Markers(pieces("Last login: today\nOLLIE1 abc", 5), "abc");
    expect(await markers.next()).toBeUndefined();
    expect(markers.noise).toBe("Last login: today\nOLLIE1 abc");
  });
});

test("control characters are made visible", () => {
  expect(visible("\x1b[31mred\x07\x9b\n\tline")).toBe("^[[31mred^G\\x9b line");
});
