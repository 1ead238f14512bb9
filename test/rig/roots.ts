/** Hosts that have nothing of this machine's: a root of busybox and one C library, which sshd moves its sessions into. */
import { chmodSync, copyFileSync, mkdirSync, readdirSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { formatPrefix, formats, succeed } from "./hold.ts";

/** `musl`: as Alpine is, no glibc. `arm64`: glibc, another processor, played by qemu. */
export type Root = "musl" | "arm64";

export const shellOf: Record<Root, string> = {
  musl: "/bin/busybox",
  arm64: "/usr/aarch64-linux-gnu/bin/busybox",
};

/** Keeps argv[0], by which busybox knows what it is to do. */
export const interpreter = "/usr/libexec/qemu-binfmt/aarch64-binfmt-P";

const armLibraries = "/usr/aarch64-linux-gnu/lib";

/** Where sshd finds the root on the host. All folders above have to be root's alone. */
export const rootPath = "/run/root";

/** Fills a folder that becomes the root. */
export function fillRoot(root: Root, folder: string, passwd: string): void {
  for (const name of ["bin", "dev", "etc", "home", "lib", "proc", "root", "run", "tmp", "usr", "var/tmp"])
    mkdirSync(join(folder, name), { recursive: true, mode: 0o755 });
  const busybox = join(folder, "bin/busybox");
  copyFileSync(shellOf[root], busybox);
  chmodSync(busybox, 0o755);
  // The commands are the same for both processors, and only one of them runs without help.
  for (const applet of succeed([shellOf.musl, "--list"]).split("\n"))
    if (applet && applet !== "busybox") symlinkSync("busybox", join(folder, "bin", applet));
  symlinkSync("../bin", join(folder, "usr/bin"));
  if (root === "musl") {
    copyFileSync("/lib/ld-musl-x86_64.so.1", join(folder, "lib/ld-musl-x86_64.so.1"));
    symlinkSync("ld-musl-x86_64.so.1", join(folder, "lib/libc.musl-x86_64.so.1"));
  } else {
    for (const name of readdirSync(armLibraries))
      if (name.includes(".so")) copyFileSync(join(armLibraries, name), join(folder, "lib", name));
  }
  writeFileSync(join(folder, "etc/passwd"), passwd);
  for (const name of devices) writeFileSync(join(folder, "dev", name), "");
}

const devices = ["null", "zero", "full", "random", "urandom", "tty"];

/** Words for `sh` that put the folder in its place. */
export function mountRoot(folder: string): string[] {
  return [
    `mkdir ${rootPath}`,
    `mount --bind ${folder} ${rootPath}`,
    `mount -t proc none ${rootPath}/proc`,
    ...devices.map((name) => `mount --bind /dev/${name} ${rootPath}/dev/${name}`),
    `mkdir -p ${rootPath}/dev/shm`,
    ...["tmp", "dev/shm"].map((name) => `mount -t tmpfs -o mode=1777 none ${rootPath}/${name}`),
    `mount --rbind /home ${rootPath}/home`,
    `mount --bind /var/tmp ${rootPath}/var/tmp`,
  ];
}

let registered = 0;

/** Programs for arm64 run by qemu from now on, on the whole machine: such is the kernel. */
export function registerArm64(): { name: string; script: string[] } {
  const name = `${formatPrefix}${process.pid}-${registered++}`;
  const magic = "\\x7fELF\\x02\\x01\\x01\\x00\\x00\\x00\\x00\\x00\\x00\\x00\\x00\\x00\\x02\\x00\\xb7\\x00";
  const mask =
    "\\xff\\xff\\xff\\xff\\xff\\xff\\xff\\x00\\xff\\xff\\xff\\xff\\xff\\xff\\xff\\xff\\xfe\\xff\\xff\\xff";
  // F: the interpreter is opened now, and is found in any root; P: it is told argv[0]; O and C: the program may be one that cannot be
  // read, and keeps its owner's rights.
  const entry = `:${name}:M::${magic}:${mask}:${interpreter}:OCPF`;
  return {
    name,
    script: [`mount -t binfmt_misc none ${formats}`, `printf %s '${entry}' > ${formats}/register`],
  };
}
