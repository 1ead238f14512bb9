/**
 * Files that have been verified, known again by what nobody can give back to a file that he has changed: its inode and the time of its last
 * change. Hashing a program of 100 MB takes half a second, looking at it nothing. The list lies where no sandbox lets anything be written.
 */
import { readFileSync, renameSync, type Stats, writeFileSync } from "node:fs";
import { join } from "node:path";

/** After a crash of the host a file can be empty whose inode and times are right. */
function bootId(): string {
  try {
    return readFileSync("/proc/sys/kernel/random/boot_id", "utf8").trim();
  } catch {
    return "";
  }
}

/** Files that are remembered. */
const most = 100;

export class Stamps {
  readonly #file: string;
  readonly #boot = bootId();

  /** @param root ROOT */
  constructor(root: string) {
    this.#file = join(root, "stamps.json");
  }

  /** Whether the file has been verified as this digest, and has not changed since. */
  knows(digest: string, stat: Stats): boolean {
    return this.#boot !== "" && this.#read()[digest] === this.#stamp(stat);
  }

  /** What cannot be written down is verified again at the next time. */
  note(digest: string, stat: Stats): void {
    const entries = Object.entries(this.#read()).filter(([name]) => name !== digest);
    const all = Object.fromEntries([...entries.slice(-most), [digest, this.#stamp(stat)]]);
    const temporary = `${this.#file}.${process.pid}`;
    try {
      writeFileSync(temporary, JSON.stringify(all), { mode: 0o600 });
      renameSync(temporary, this.#file);
    } catch {
      // The folder cannot be written, or is full.
    }
  }

  #stamp({ dev, ino, size, uid, mode, ctimeMs }: Stats): string {
    return [this.#boot, dev, ino, size, uid, mode.toString(8), ctimeMs].join(":");
  }

  #read(): Record<string, string> {
    try {
      const value: unknown = JSON.parse(readFileSync(this.#file, "utf8"));
      return typeof value === "object" && value !== null ? (value as Record<string, string>) : {};
    } catch {
      return {};
    }
  }
}
