/** Errors as clients get them. */
import { expect, test } from "bun:test";
import { Fault, toFault } from "../../src/fault.ts";
import { toNineError } from "../../src/ninep/errors.ts";

const full = Object.assign(new Error("ENOSPC: no space left on device, write"), { code: "ENOSPC" });

test.each([
  [full, "No space left on device"],
  [toFault(full, "cannot write plan"), "No space left on device: cannot write plan"],
  [new Fault("full", "the spool is full"), "No space left on device: the spool is full"],
])("a full disk is said once: %p", (error, words) => {
  expect(toNineError(error).message).toBe(words);
});
