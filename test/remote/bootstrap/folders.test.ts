/** Hosts whose home is of no use: the next folder is taken, and where there is none the error says why. */
import { afterAll, afterEach, describe, expect, setDefaultTimeout, test } from "bun:test";
import { mkdirSync, mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { lacksRoot } from "../../needs.ts";
import { Host, hello, programs } from "./local.ts";

setDefaultTimeout(60_000);

const folder = mkdtempSync(join(tmpdir(), "ollie-programs-"));
const small = programs(join(folder, "1"), { mib: 5 });
let host: Host;
afterEach(() => host.remove());
afterAll(() => rmSync(folder, { recursive: true, force: true }));

/** File systems of the mount namespace that the host's shell gets: nothing of this machine is touched, nothing is left. */
const nowhereElse = "mount -t tmpfs -o ro none /var/tmp; mount -t tmpfs -o ro none /dev/shm";
const noexec = 'mount -t tmpfs -o noexec none "$HOME"';
const readOnly = 'mount -t tmpfs -o ro none "$HOME"';
const tiny = 'mount -t tmpfs -o size=4m none "$HOME"';
/** Another folder, which outlives the mount namespace. */
function withOther(mounts: string): { host: Host; other: string } {
  const other = mkdtempSync(join(folder, "other-"));
  return { host: new Host({ mounts: `${mounts}; ${nowhereElse}`, env: { OLLIE_DIR: other } }), other };
}

describe.skipIf(lacksRoot())("the folder", () => {
  test.each([
    ["noexec", noexec, "~/.cache/ollie is on a file system where no program may run (noexec)"],
    ["read-only", readOnly, "~/.cache/ollie is read-only"],
    ["too small", tiny, "~/.cache/ollie has no room"],
  ])("a home that is %s: the next one is taken, and told", async (_, mounts, note) => {
    const made = withOther(mounts);
    host = made.host;
    const booted = await host.boot({ programs: small });
    expect(await hello(booted)).toBe("hello 1");
    expect(booted.notes).toEqual([note, "ollie-remote was installed in $OLLIE_DIR"]);
    expect(host.commands.length).toBe(1);
    expect(readdirSync(join(made.other, "bin"))).toEqual([`ollie-remote-${booted.digest}`]);
    // Its stamp cannot be written where the home is read-only; what lies there is looked through then.
    expect((await host.boot({ programs: small })).hit).toBe(true);
  });

  test.each([
    ["noexec", noexec, "boot.noexec", "no program may run (noexec)"],
    ["read-only", readOnly, "boot.read_only", "~/.cache/ollie is read-only"],
    ["too small", tiny, "boot.no_space", "~/.cache/ollie has no room"],
  ])(
    "a home that is %s, and no other folder: the error names all that were tried",
    async (_, mounts, code, says) => {
      host = new Host({ mounts: `${mounts}; ${nowhereElse}` });
      await expect(host.boot({ programs: small })).rejects.toMatchObject({
        code,
        message: expect.stringContaining(says),
      });
      await expect(host.boot({ programs: small })).rejects.toThrow(/\/var\/tmp\/ollie-UID.*set OLLIE_DIR/);
    },
  );

  test("a disk that is full in the middle of it: nothing is left there, and the next folder is taken", async () => {
    const full = mkdtempSync(join(folder, "full-"));
    const bin = mkdtempSync(join(folder, "bin-"));
    // A df that knows nothing, as where a quota is in force.
    await Bun.write(join(bin, "df"), "#!/bin/sh\necho Filesystem\necho none 1 1 unknown\n");
    Bun.spawnSync(["chmod", "755", join(bin, "df")], { env: {} });
    const path = `${bin}:/usr/sbin:/usr/bin:/sbin:/bin`;
    host = new Host({
      mounts: `mount --bind "${full}" "$HOME/.cache" ; mount -t tmpfs -o ro none /var/tmp`,
      env: { PATH: path, OLLIE_DIR: mkdtempSync(join(folder, "other-")) },
    });
    mkdirSync(join(host.home, ".cache"));
    Bun.spawnSync(["mount", "-t", "tmpfs", "-o", "size=4m", "none", full], { env: {} });
    try {
      const booted = await host.boot({ programs: small });
      expect(await hello(booted)).toBe("hello 1");
      expect(booted.notes).toEqual([
        "~/.cache/ollie has no room",
        "ollie-remote was installed in $OLLIE_DIR",
      ]);
      expect(host.commands.length).toBe(2);
      expect(readdirSync(join(full, "ollie/bin"))).toEqual([]);
    } finally {
      Bun.spawnSync(["umount", full], { env: {} });
    }
  });

  test("a folder in /var/tmp that somebody else has made is not used", async () => {
    host = new Host({
      mounts: `${readOnly}; mount -t tmpfs none /var/tmp; mkdir -m 777 /var/tmp/ollie-0; chown 65534 /var/tmp/ollie-0; mount -t tmpfs none /dev/shm`,
    });
    const booted = await host.boot({ programs: small });
    booted.channel.close();
    expect(booted.notes).toContain("/var/tmp/ollie-UID belongs to somebody else, or others can write it");
    expect(booted.notes).toContain("ollie-remote was installed in /dev/shm/ollie-UID");
  });
});
