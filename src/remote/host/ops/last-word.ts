/**
 * Room for the last record of an operation, taken before it runs: where the journal finds no more, how it has ended is still written down.
 *
 *     ended.reserved  the room
 *     ended           the record; appears whole
 */
import {
  closeSync,
  fdatasyncSync,
  openSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
  writeSync,
} from "node:fs";
import { join } from "node:path";
import type { Ended } from "./record.ts";

const file = "ended";
const reserved = "ended.reserved";
/** Bytes: a tool's result has 16 KiB, and escapes in JSON. */
const room = 24 * 1024;
/** Characters of a result that are kept where that is not enough. */
const shortened = 3000;

/** @throws the system's error where there is no room */
export function reserveEnd(folder: string): void {
  writeFileSync(join(folder, reserved), "".padEnd(room), { mode: 0o600, flag: "w" });
}

/** The record is in the journal. */
export function releaseEnd(folder: string): void {
  rmSync(join(folder, reserved), { force: true });
}

/** @throws the system's error where nothing was reserved */
export function writeEnd(folder: string, ended: Ended): void {
  const whole = Buffer.from(JSON.stringify(ended));
  const text = whole.length <= room ? whole : Buffer.from(JSON.stringify(short(ended)));
  const fd = openSync(join(folder, reserved), "r+");
  try {
    writeSync(fd, text, 0, text.length, 0);
    fdatasyncSync(fd);
  } finally {
    closeSync(fd);
  }
  renameSync(join(folder, reserved), join(folder, file));
}

/** Undefined where there is none. */
export function readEnd(folder: string): Ended | undefined {
  try {
    return JSON.parse(readFileSync(join(folder, file), "utf8")) as Ended;
  } catch {
    return undefined;
  }
}

function short(ended: Ended): Ended {
  const { outcome, remark } = ended;
  const cut = (text: string) =>
    `${text.slice(0, shortened)}\n[… the rest was lost: the disk of the host is full]`;
  return {
    ...ended,
    remark: remark && cut(remark),
    outcome: outcome && { ok: outcome.ok, how: outcome.how, text: cut(outcome.text) },
  };
}
