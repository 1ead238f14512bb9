/** What is sent, what is not, and what becomes of it when something goes wrong on the way. */
import { afterAll, afterEach, describe, expect, setDefaultTimeout, test } from "bun:test";
import {
  appendFileSync,
  chmodSync,
  copyFileSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  truncateSync,
  utimesSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { sha256 } from "../../../src/remote/bootstrap/digest.ts";
import { until } from "../../until.ts";
import { Host, type HostOptions, hello, programs, watched } from "./local.ts";

setDefaultTimeout(60_000);

const folder = mkdtempSync(join(tmpdir(), "ollie-programs-"));
const first = programs(join(folder, "1"), { version: "1" });
const second = programs(join(folder, "2"), { version: "2" });
const hosts: Host[] = [];
afterEach(() => {
  for (const host of hosts.splice(0)) host.remove();
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

function newHost(options?: HostOptions): Host {
  const host = new Host(options);
  hosts.push(host);
  return host;
}

async function started(host: Host, from: string) {
  const booted = await host.boot({ programs: from });
  expect(await hello(booted)).toBe(`hello ${from === first ? "1" : "2"}`);
  const file = join(host.bin, `ollie-remote-${booted.digest}`);
  expect(sha256(readFileSync(file))).toBe(booted.digest);
  return { ...booted, file };
}

/** A PATH with these programs and no other. */
function only(...names: string[]): Record<string, string> {
  const bin = mkdtempSync(join(folder, "bin-"));
  for (const name of names) symlinkSync(Bun.which(name)!, join(bin, name));
  return { PATH: bin };
}
const needed = "head tee tail cat mv rm mkdir chmod wc ls id df uname".split(" ");

describe("what was installed", () => {
  test("is taken as it is while it is the same file, which nobody but its owner can write", async () => {
    const host = newHost();
    const { file, uploaded } = await started(host, first);
    expect(uploaded).toBeGreaterThan(1024 * 1024);
    expect(statSync(file).mode & 0o777).toBe(0o700);
    expect((await started(host, first)).hit).toBe(true);
  });

  test.each<[string, (file: string) => void]>([
    ["cut short", (file) => truncateSync(file, 1000)],
    [
      "exchanged for garbage of the same size",
      (file) => writeFileSync(file, Buffer.alloc(statSync(file).size)),
    ],
    ["longer", (file) => appendFileSync(file, "x")],
    ["taken away", (file) => rmSync(file)],
    [
      "exchanged for a link to a good one",
      (file) => {
        copyFileSync(file, `${file}.elsewhere`);
        rmSync(file);
        symlinkSync(`${file}.elsewhere`, file);
      },
    ],
  ])("is sent anew when it was %s", async (_, spoil) => {
    const host = newHost();
    const { file } = await started(host, first);
    spoil(file);
    const again = await started(host, first);
    expect([again.hit, again.uploaded > 0]).toEqual([false, true]);
    expect(statSync(file).isFile()).toBe(true);
    expect((await started(host, first)).hit).toBe(true);
  });

  test("is looked through, and not sent, when it is right but no longer the same file", async () => {
    const host = newHost();
    const { file } = await started(host, first);
    copyFileSync(file, `${file}.new`);
    rmSync(file);
    copyFileSync(`${file}.new`, file);
    chmodSync(file, 0o700);
    rmSync(`${file}.new`);
    expect((await started(host, first)).hit).toBe(true);
  });

  test("is sent anew when others could have written it", async () => {
    const host = newHost();
    const { file } = await started(host, first);
    chmodSync(file, 0o722);
    const again = await started(host, first);
    expect(again.hit).toBe(false);
    expect(statSync(file).mode & 0o777).toBe(0o700);
  });
});

describe("an upgrade", () => {
  test("sends what has changed, and keeps the version before", async () => {
    const host = newHost();
    const old = await started(host, first);
    const { uploaded, digest } = await started(host, second);
    expect(uploaded).toBeLessThanOrEqual(1024 * 1024 + 1024);
    expect(host.installed()).toEqual([old.digest, digest].sort().map((each) => `ollie-remote-${each}`));
  });

  test("a base that is damaged does no harm", async () => {
    const host = newHost();
    const old = await started(host, first);
    const bytes = readFileSync(old.file);
    bytes.fill(0, 3 * 1024 * 1024, 5 * 1024 * 1024);
    writeFileSync(old.file, bytes);
    await started(host, second);
  });

  test("of many versions the current one and the one before are kept, and those that run", async () => {
    const host = newHost();
    const running = await host.boot({ programs: first });
    for (const version of ["2", "3", "4", "5"])
      await hello(await host.boot({ programs: programs(join(folder, version), { version, mib: 2 }) }));
    const names = host.installed();
    expect(names).toContain(`ollie-remote-${running.digest}`);
    expect(names.length).toBe(3);
    running.channel.close();
  });

  test("what was left by others for more than an hour goes, what is younger stays", async () => {
    const host = newHost();
    mkdirSync(host.bin, { recursive: true });
    for (const [name, age] of [
      [".up-abc.1", 7200],
      [".part-abc-zstd.1", 7200],
      [".up-def.1", 60],
    ] as const) {
      writeFileSync(join(host.bin, name), "x");
      const then = Date.now() / 1000 - age;
      utimesSync(join(host.bin, name), then, then);
    }
    const { digest } = await started(host, first);
    expect(host.installed()).toEqual([".up-def.1", `ollie-remote-${digest}`]);
  });
});

describe("an upload", () => {
  /** One that ends when so many bytes have been written. */
  async function broken(host: Host, bytes: number): Promise<void> {
    host.onWrite = (channel, total) => {
      if (total > bytes) channel.close();
    };
    await expect(host.boot({ programs: first, stall: 2000 })).rejects.toThrow();
    host.onWrite = () => {};
  }

  /** What is kept of it is all that is there. */
  async function leftPart(host: Host): Promise<void> {
    await until("the script has tidied up", () => {
      const names = host.installed();
      return names.length === 1 && names[0]!.startsWith(".part-");
    });
  }

  test("that broke off goes on where it was, at the last frame", async () => {
    const host = newHost();
    const whole = (await started(newHost(), first)).uploaded;
    await broken(host, 6 * 1024 * 1024);
    await leftPart(host);
    const { all, onProgress } = watched();
    const booted = await host.boot({ programs: first, onProgress });
    expect(await hello(booted)).toBe("hello 1");
    expect(booted.uploaded).toBeLessThan(whole - 3 * 1024 * 1024);
    expect(all.findLast(({ doing }) => doing === "uploading")).toMatchObject({
      done: booted.uploaded,
      total: booted.uploaded,
    });
    expect(host.installed()).toEqual([`ollie-remote-${booted.digest}`]);
  });

  test("is begun anew where what is left of the last one is damaged", async () => {
    const host = newHost();
    await broken(host, 6 * 1024 * 1024);
    await leftPart(host);
    const part = join(host.bin, host.installed()[0]!);
    writeFileSync(part, Buffer.alloc(statSync(part).size, "x"));
    const booted = await started(host, first);
    expect(host.commands.length).toBe(3);
    expect(host.installed()).toEqual([`ollie-remote-${booted.digest}`]);
  });

  test("of several at once: each of them ends well, and one program is there", async () => {
    const host = newHost();
    const all = await Promise.all(Array.from({ length: 4 }, () => started(host, first)));
    expect(new Set(all.map(({ digest }) => digest)).size).toBe(1);
    expect(host.installed()).toEqual([`ollie-remote-${all[0]!.digest}`]);
  });

  test("tells how far it is, with rate and time left", async () => {
    const { all, onProgress } = watched();
    const host = newHost();
    const booted = await host.boot({ programs: first, onProgress });
    booted.channel.close();
    expect(all.map(({ doing }) => doing).filter((doing, at, list) => doing !== list[at - 1])).toEqual([
      "checking",
      "uploading",
      "installing",
    ]);
    const uploads = all.filter(({ doing }) => doing === "uploading");
    expect(uploads.at(-1)).toMatchObject({ done: booted.uploaded, total: booted.uploaded, left: 0 });
    expect(uploads.map(({ done }) => done!)).toEqual(uploads.map(({ done }) => done!).sort((a, b) => a - b));
  });

  test("to a host that takes no more is given up after a while, and can be cancelled before", async () => {
    const host = newHost();
    // A write that never ends, as when the other side is gone without a word.
    const exec = host.connection.exec;
    host.connection.exec = async (command) => {
      const channel = await exec(command);
      let total = 0;
      const write = channel.write.bind(channel);
      channel.write = (bytes) => {
        total += bytes.length;
        return total > 1024 * 1024 ? new Promise(() => {}) : write(bytes);
      };
      return channel;
    };
    await expect(host.boot({ programs: first, stall: 500 })).rejects.toThrow("nothing has moved for 1 s");
    const cancel = new AbortController();
    const { onProgress, all } = watched();
    const waiting = host.boot({ programs: first, signal: cancel.signal, onProgress });
    await until("an upload", () => all.some(({ doing }) => doing === "uploading"));
    cancel.abort();
    await expect(waiting).rejects.toThrow("was cancelled");
  });

  test("leaves nothing of itself but what the next one goes on with", async () => {
    const host = newHost();
    await broken(host, 5 * 1024 * 1024);
    await leftPart(host);
    expect(host.installed()[0]).toStartWith(".part-");
  });
});

describe("a host that lacks something", () => {
  test.each([
    ["zstd", ["gzip", "sha256sum", "stat"], []],
    ["zstd and gzip", ["sha256sum", "stat"], []],
    ["stat, so that the file is looked through each time", ["gzip", "sha256sum"], []],
    ["sha256sum, but has openssl", ["gzip", "openssl", "stat"], []],
    ["sha256sum, but has shasum", ["gzip", "shasum", "perl", "stat"], []],
    ["sha256sum, but has busybox", ["gzip", "busybox", "stat"], []],
    ["all that makes SHA-256", ["gzip", "cksum", "stat"], ["weak_verify"]],
  ] as [string, string[], string[]][])("%s", async (_, others, notes) => {
    const host = newHost({ env: only(...needed, ...others) });
    const booted = await started(host, first);
    expect(booted.notes.map((note) => note.split(":")[0]!)).toEqual(notes);
    expect((await started(host, first)).hit).toBe(true);
    await started(host, second);
  });

  test("what it cannot be without is named", async () => {
    const host = newHost({ env: only(...needed.filter((name) => name !== "tee" && name !== "wc")) });
    await expect(host.boot({ programs: first })).rejects.toThrow(
      "the host has no tee, wc, sha256sum on its PATH; coreutils or busybox has them",
    );
  });
});

describe("the self-test", () => {
  test("a program that does not answer as it should is not installed", async () => {
    const wrong = programs(join(folder, "wrong"), { answer: "Bun is a fast JavaScript runtime", mib: 1 });
    const host = newHost();
    await expect(host.boot({ programs: wrong })).rejects.toMatchObject({
      code: "boot.selftest",
      message: expect.stringContaining("Bun is a fast JavaScript runtime; was it stripped?"),
    });
    expect(host.installed().filter((name) => !name.startsWith(".part-"))).toEqual([]);
  });

  test("a program that dies, needs a loader or another machine is told as that", async () => {
    const cases = [
      ["exit 134", "boot.unsupported", "/proc"],
      ["echo 'Exec format error'; exit 126", "boot.unsupported", "another kind of machine"],
      ["echo 'version GLIBC_2.17 not found'; exit 1", "boot.no_loader", "C library"],
    ] as const;
    for (const [script, code, says] of cases) {
      const path = join(folder, code + says.length);
      mkdirSync(path);
      writeFileSync(join(path, "ollie-remote-linux-x64"), `#!/bin/sh\n${script}\n`);
      await expect(newHost().boot({ programs: path })).rejects.toMatchObject({
        code,
        message: expect.stringContaining(says),
      });
    }
  });
});

describe("the C library", () => {
  /** A program that runs only under the pack's loader, and a pack whose loader says who it is. */
  function withPack(): string {
    const path = mkdtempSync(join(folder, "pack-"));
    writeFileSync(
      join(path, "ollie-remote-linux-x64"),
      `#!/bin/sh
[ -n "$LOADED" ] || { echo "version GLIBC_2.17 not found"; exit 1; }
case $1 in --ok) echo "ollie-remote 1 linux-x64" ;; serve) echo "hello by $LOADED" ;; esac
`,
    );
    const files = [
      [
        "ld.so",
        '#!/bin/sh\n[ "$1" = --library-path ] || exit 3\nLOADED=$(cat "$2/libc.so.6") exec "$3" "$4"\n',
      ],
      ["libc.so.6", "the pack"],
    ] as const;
    const head = {
      loader: "ld.so",
      from: "a test",
      files: files.map(([name, text]) => ({ name, size: text.length, sha256: sha256(Buffer.from(text)) })),
    };
    writeFileSync(
      join(path, "ollie-remote-linux-x64.libc"),
      `${JSON.stringify(head)}\n${files.map(([, text]) => text).join("")}`,
    );
    return path;
  }

  test("comes along where the host's own is too old, without the program being sent twice", async () => {
    const host = newHost();
    const path = withPack();
    const booted = await host.boot({ programs: path });
    expect(await hello(booted)).toBe("hello by the pack");
    expect(host.commands.length).toBe(2);
    expect(
      readdirSync(join(host.home, ".cache/ollie")).filter((name) => name.startsWith("libc-")).length,
    ).toBe(1);
    const again = await host.boot({ programs: path });
    expect([again.hit, await hello(again)]).toEqual([true, "hello by the pack"]);
  });

  test("is verified as the program is", async () => {
    const host = newHost();
    const path = withPack();
    await hello(await host.boot({ programs: path }));
    const base = join(host.home, ".cache/ollie");
    const lib = join(base, readdirSync(base).find((name) => name.startsWith("libc-"))!);
    writeFileSync(join(lib, "libc.so.6"), "the hack");
    const again = await host.boot({ programs: path });
    expect([again.hit, await hello(again)]).toEqual([false, "hello by the pack"]);
    expect(again.uploaded).toBeGreaterThan(0);
  });
});
