/** The programs that lie in `BASE/bin`, each under the name of its hash. */
import {
  closeSync,
  constants,
  fstatSync,
  openSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { isSigned, parseManifest, signatureBytes } from "../../protocol/manifest.ts";
import { hashOf } from "../files/read.ts";
import { ownFolder } from "../own-folder.ts";
import type { Stamps } from "./stamps.ts";

/** Bytes that a program may have, unpacked. */
export const programLimit = 512 * 1024 * 1024;
const prefix = "ollie-remote-";

export class Programs {
  readonly folder: string;

  /**
   * @param publishers lists of keys; a program must be signed by one of each
   * @throws Error where BASE/bin is not ours
   */
  constructor(
    base: string,
    private readonly stamps: Stamps,
    private readonly publishers: readonly (readonly string[])[],
  ) {
    this.folder = ownFolder(join(ownFolder(base), "bin"));
  }

  path(digest: string): string {
    return join(this.folder, prefix + digest);
  }

  /** Whether it lies there as it was verified, or is verified now. */
  async has(digest: string): Promise<boolean> {
    let fd: number;
    try {
      fd = openSync(this.path(digest), constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
    } catch {
      return false;
    }
    try {
      const stat = fstatSync(fd);
      const ours = stat.isFile() && stat.uid === process.geteuid!() && (stat.mode & 0o122) === 0o100;
      if (!ours || stat.size === 0) return false;
      if (this.stamps.knows(digest, stat)) return true;
      if ((await hashOf(fd)) !== digest) return false;
      this.stamps.note(digest, stat);
      return true;
    } finally {
      closeSync(fd);
    }
  }

  /** Whether the publishers that the policy asks for have signed it; `proof` is what was sent with it, else what was kept of that. */
  signed(digest: string, proof = this.#kept(digest)): boolean {
    if (this.publishers.length === 0) return true;
    const [signature, text] = [proof.subarray(0, signatureBytes), proof.subarray(signatureBytes).toString()];
    if (!this.publishers.every((keys) => isSigned(text, signature, keys))) return false;
    try {
      return Object.values(parseManifest(text).programs).some(({ sha256 }) => sha256 === digest);
    } catch {
      return false;
    }
  }

  keepProof(digest: string, proof: Buffer): void {
    if (proof.length > 0) writeFileSync(this.#proof(digest), proof, { mode: 0o600 });
  }

  #kept(digest: string): Buffer {
    try {
      return readFileSync(this.#proof(digest));
    } catch {
      return Buffer.alloc(0);
    }
  }

  #proof(digest: string): string {
    return join(this.folder, `.signed-${digest}`);
  }

  note(digest: string): void {
    this.stamps.note(digest, statSync(this.path(digest)));
  }

  /** The one that was installed, the one before it and those that run stay. What cannot be removed does no harm. */
  sweep(digest: string): void {
    const others = readdirSync(this.folder)
      .filter((name) => /^ollie-remote-[0-9a-f]{64}$/.test(name) && name !== prefix + digest)
      .map((name) => ({ name, time: timeOf(join(this.folder, name)) }))
      .sort((a, b) => b.time - a.time);
    const running = commandLines();
    for (const { name } of others.slice(1)) {
      if (running.some((line) => line.includes(name))) continue;
      rmSync(join(this.folder, name), { force: true });
      rmSync(this.#proof(name.slice(prefix.length)), { force: true });
    }
    for (const name of readdirSync(this.folder)) {
      const path = join(this.folder, name);
      if (/^\.up-/.test(name) && Date.now() - timeOf(path) > 3_600_000) rmSync(path, { force: true });
    }
  }
}

function timeOf(path: string): number {
  try {
    return statSync(path).mtimeMs;
  } catch {
    return 0;
  }
}

function commandLines(): string[] {
  return readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name))
    .map((pid) => {
      try {
        return readFileSync(`/proc/${pid}/cmdline`, "utf8");
      } catch {
        return "";
      }
    });
}
