/** What landrun's flags come to on kernels of each kind. */
import { describe, expect, test } from "bun:test";
import { type Kernel, logFlags, type Restrictions, shortfalls } from "../../src/sandbox/landrun.ts";

const nothing: Restrictions = {
  filesystem: { ro: [], rox: [], rw: [], rwx: [] },
  unix: [],
  bind: [],
  connect: [],
  unrestricted: { filesystem: false, network: false, scoped: false },
  ignoreMissing: false,
  log: 0,
};
const kernel = (landlock: number, seccomp = true): Kernel => ({ machine: "x64", landlock, seccomp });
/** The ABIs that are asked for. */
const wanted = (restrictions: Partial<Restrictions>, on: Kernel) =>
  shortfalls({ ...nothing, ...restrictions }, on).map((text) =>
    Number(/needs Landlock ABI (\d+)/.exec(text)?.[1] ?? 0),
  );

describe("what a kernel cannot enforce", () => {
  test.each([
    [0, [1, 3, 5, 6]],
    [1, [3, 5, 6]],
    [2, [3, 5, 6]],
    [3, [5, 6]],
    [4, [5, 6]],
    [5, [6]],
    [6, []],
    [9, []],
  ])("everything denied, ABI %d", (abi, missing) => {
    expect(wanted({}, kernel(abi))).toEqual(missing);
  });

  test("ports need ABI 4; without any, the filter denies all sockets", () => {
    expect(wanted({ connect: [443] }, kernel(3))).toContain(4);
    expect(wanted({ bind: [80] }, kernel(3))).toContain(4);
    expect(wanted({ bind: [80] }, kernel(6))).toEqual([]);
    expect(wanted({}, kernel(3))).not.toContain(4);
  });

  test("exceptions among sockets need ABI 9; without any, the filter denies them all", () => {
    expect(wanted({ unix: ["/run/x"] }, kernel(8))).toEqual([9]);
    expect(wanted({ unix: ["/run/x"] }, kernel(9))).toEqual([]);
    expect(wanted({}, kernel(8, false))).toEqual([9, 0]);
    expect(wanted({}, kernel(9, false))).toEqual([0]);
  });

  test("what is unrestricted needs nothing", () => {
    const all = { filesystem: true, network: true, scoped: true };
    expect(wanted({ unrestricted: all }, kernel(0, false))).toEqual([]);
    expect(wanted({ unrestricted: { ...all, scoped: false } }, kernel(5))).toEqual([6]);
    expect(wanted({ unrestricted: { ...all, filesystem: false } }, kernel(2))).toEqual([3, 5]);
    expect(wanted({ unrestricted: { ...all, network: false } }, kernel(0))).toEqual([]);
  });

  test("what is logged needs ABI 7", () => {
    expect(wanted({ log: logFlags.subprocessesOn }, kernel(6))).toEqual([7]);
    expect(wanted({ log: logFlags.subprocessesOn }, kernel(7))).toEqual([]);
  });

  test("each is a phrase that says what the kernel has", () => {
    expect(shortfalls(nothing, kernel(5))).toEqual([
      "send signals to processes outside and reach abstract sockets (needs Landlock ABI 6, this kernel has 5)",
    ]);
  });
});
