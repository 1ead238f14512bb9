/** A host as Alpine is: busybox, and no glibc. The compiled program runs there with the C library that comes along. */
import { afterAll, expect, setDefaultTimeout, test } from "bun:test";
import { copyFileSync, mkdirSync, mkdtempSync, readdirSync, rmSync, symlinkSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { compile } from "../../../src/build/compile.ts";
import { packRemotes } from "../../../src/build/release.ts";
import { ownTarget } from "../../../src/build/targets.ts";
import { lacks, lacksRoot } from "../../needs.ts";
import { Host } from "./local.ts";

setDefaultTimeout(120_000);

const folder = mkdtempSync(join(tmpdir(), "ollie-musl-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const applets =
  "sh ls mkdir mv rm chmod uname id wc cut head tail tee df echo cat sleep gzip sha256sum dd stat find grep";

/** A root with busybox and nothing else; its own processes and devices are mounted for each command. */
function root(): string {
  const path = join(folder, "root");
  for (const name of ["bin", "dev", "proc", "tmp", "root"]) mkdirSync(join(path, name), { recursive: true });
  copyFileSync(Bun.which("busybox")!, join(path, "bin/busybox"));
  for (const name of applets.split(" ")) symlinkSync("busybox", join(path, "bin", name));
  return path;
}

/** One that needs no library itself. */
const isStatic =
  Bun.which("busybox") !== null &&
  !Bun.spawnSync(["ldd", Bun.which("busybox")!], { env: { PATH: process.env.PATH } }).success;

test.skipIf(lacksRoot() || lacks("busybox-static", isStatic))(
  "without glibc: the program runs by the loader of the pack, is found again, and is upgraded",
  async () => {
    const path = root();
    const mounts = ["proc /proc", "tmpfs /tmp"].map((each) => {
      const [type, on] = each.split(" ");
      return `mount -t ${type} none ${path}${on}`;
    });
    const host = new Host({
      shell: ["chroot", path, "/bin/sh"],
      mounts: [...mounts, `mount --bind /dev ${path}/dev`].join("; "),
      env: { HOME: "/root", PATH: "/usr/sbin:/usr/bin:/sbin:/bin" },
    });
    const target = ownTarget();
    const programs = join(folder, "dist");
    const built = async (version: string) => {
      mkdirSync(programs, { recursive: true });
      const file = join(programs, `ollie-remote-${target}`);
      await compile("ollie-remote", file, { version, commit: "unknown", target }, undefined);
      await packRemotes(programs, [{ target, file }], version, { zstd: 1 });
    };
    try {
      await built("1.0.0");
      const first = await host.boot({ programs });
      first.channel.close();
      expect(first.hit).toBe(false);
      const second = await host.boot({ programs });
      second.channel.close();
      expect([second.hit, second.digest]).toEqual([true, first.digest]);
      await built("1.0.1");
      const third = await host.boot({ programs });
      third.channel.close();
      expect([third.hit, third.uploaded < 1024 * 1024]).toEqual([false, true]);
      const base = readdirSync(join(path, "root/.cache/ollie"));
      expect(base.filter((name) => name.startsWith("libc-")).length).toBe(1);
    } finally {
      host.remove();
    }
  },
);
