/** What a launch image does: system calls, one after the other, until the last one becomes the program. */
import type { SyscallName } from "./syscalls.ts";

/** A number, bytes to point to, a text to point to (as a C string), or a structure that itself points to bytes. */
export type Argument = number | bigint | string | Uint8Array | Pointing;

/** `fields` as 64-bit words; bytes among them stand for the address of a copy. */
export interface Pointing {
  fields: (number | bigint | Uint8Array)[];
}

export interface Step {
  /** A system call by its name, or its number; `exec`: become the program named by the words that follow the image's own. */
  call: SyscallName | number | "exec";
  args: Argument[];
  /** What the call must return; unset = anything but an error. */
  returns?: { least: bigint; most: bigint };
  /** What cannot be done if this step fails, after "cannot": `mount /tmp`. */
  label: string;
  /** The image's exit status if this step fails; unset = the errno. */
  status?: number;
}

const smallest = -(2n ** 63n);
const largest = 2n ** 63n - 1n;

/** A step without which the program must not run. */
export function must(label: string, call: Step["call"], ...args: Argument[]): Step {
  return { call, args, label, returns: { least: 0n, most: largest } };
}

/** A step that may fail: without it the program has less, never more. */
export function attempt(label: string, call: SyscallName | number, ...args: Argument[]): Step {
  return { call, args, label, returns: { least: smallest, most: largest } };
}

/** A forbidden act: anything but this very refusal ends the image. */
export function refused(errno: number, label: string, call: SyscallName | number, ...args: Argument[]): Step {
  return { call, args, label, returns: { least: BigInt(-errno), most: BigInt(-errno) } };
}

/** A call that must return this very number. */
export function equals(value: number, label: string, call: SyscallName | number, ...args: Argument[]): Step {
  return { call, args, label, returns: { least: BigInt(value), most: BigInt(value) } };
}

/** Ends the image, whatever the call returns, with that as its exit status: an errno, or a small number less than 0 modulo 256. */
export function reveal(label: string, call: SyscallName | number, ...args: Argument[]): Step {
  return { call, args, label, returns: { least: smallest, most: smallest } };
}

const PR_SET_NO_NEW_PRIVS = 38;

/** Without it a process may neither restrict itself with Landlock nor filter its system calls. */
export const noNewPrivs: Step = must("set no_new_privs", "prctl", PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);

/** What a program that was started with the words `argv` behind the image becomes. */
export const becomeProgram: Step = must("run the program", "exec");
