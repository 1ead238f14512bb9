/** What hosts of the rig need of the machine. */
import { existsSync } from "node:fs";
import { lacks, lacksPrograms, lacksRoot } from "../needs.ts";
import { path } from "./hold.ts";
import { interpreter, shellOf } from "./roots.ts";

/** For `skipIf`: hosts can not be made here. */
export function lacksHosts(): boolean {
  return (
    lacksRoot() ||
    lacksPrograms("gcc", "ssh", "ssh-keygen", "nsenter", "unshare") ||
    lacks(
      "sshd and ip",
      ["sshd", "ip"].every((name) => Bun.which(name, { PATH: path }) !== null),
    ) ||
    lacks("/dev/net/tun", existsSync("/dev/net/tun")) ||
    lacks(
      "to be allowed to make namespaces and to mount",
      Bun.spawnSync(["unshare", "--net", "--mount", "--pid", "--fork", "--mount-proc", "true"]).success,
    )
  );
}

/** For `skipIf`: the parts of a host without glibc. */
export function lacksMusl(): boolean {
  return (
    lacksHosts() ||
    lacks("musl and busybox-static", existsSync(shellOf.musl) && existsSync("/lib/ld-musl-x86_64.so.1"))
  );
}

/** For `skipIf`: the parts of an arm64 host. */
export function lacksArm64(): boolean {
  return (
    lacksHosts() ||
    lacks(
      "qemu-user-static, and libc6-arm64-cross with what arm64.sh adds to it",
      existsSync(interpreter) && existsSync(shellOf.arm64),
    )
  );
}
