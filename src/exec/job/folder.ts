/**
 * What a job's supervisor keeps in the job's folder. It works there with relative paths, so that the folder may be renamed while the
 * job runs.
 *
 *     family         how the job's processes are found
 *     out.OFFSET     output, see output.ts
 *     exit           how it ended; appears whole, when all of the job is gone
 *     exit.reserved  room for that file, so that a disk that is full by then takes it
 */
import { closeSync, fdatasyncSync, openSync, readFileSync, renameSync, writeSync } from "node:fs";
import { join } from "node:path";
import type { Family } from "../family.ts";

export interface JobExit {
  /** Exit status; absent when a signal ended it. */
  code?: number;
  /** Name of the signal. */
  signal?: string;
  /** Milliseconds since 1970. */
  at: number;
  /** Bytes printed in all. */
  bytes: number;
  /** Bytes of these that the disk did not take. */
  lost: number;
  /** What it had left running and was ended with it. */
  leftovers?: string;
}

const familyFile = "family";
const exitFile = "exit";
const reservedFile = "exit.reserved";
/** Bytes of the file `exit`. */
const exitBytes = 1024;

export function writeFamily(folder: string, family: Family): void {
  write(join(folder, familyFile), "wx", JSON.stringify({ ...family, strangers: undefined }));
}

/** Undefined where the program has not been started. */
export function readFamily(folder: string): Family | undefined {
  return readJson(join(folder, familyFile)) as Family | undefined;
}

export function reserveExit(folder: string): void {
  write(join(folder, reservedFile), "wx", "".padEnd(exitBytes));
}

export function writeExit(folder: string, exit: JobExit): void {
  const leftovers = exit.leftovers?.slice(0, exitBytes / 4);
  const text = JSON.stringify({ ...exit, leftovers });
  write(join(folder, reservedFile), "r+", Buffer.byteLength(text) > exitBytes ? bare(exit) : text);
  renameSync(join(folder, reservedFile), join(folder, exitFile));
}

/** Undefined as long as there is none. */
export function readExit(folder: string): JobExit | undefined {
  return readJson(join(folder, exitFile)) as JobExit | undefined;
}

function bare({ leftovers: _, ...exit }: JobExit): string {
  return JSON.stringify(exit);
}

function write(path: string, flags: string, text: string): void {
  const fd = openSync(path, flags, 0o600);
  try {
    writeSync(fd, text, 0);
    fdatasyncSync(fd);
  } finally {
    closeSync(fd);
  }
}

function readJson(path: string): unknown {
  try {
    return JSON.parse(readFileSync(path, "utf8"));
  } catch {
    return undefined;
  }
}
