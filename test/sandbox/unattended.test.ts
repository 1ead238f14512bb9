import { expect, test } from "bun:test";
import type { Policy } from "../../src/sandbox/policy.ts";
import { withoutProject } from "../../src/sandbox/unattended.ts";

function policy(filesystem: Partial<Policy["filesystem"]>): Policy {
  return {
    filesystem: { list: [], ro: ["/ro"], rox: ["/rox"], rw: [], rwx: [], ...filesystem },
    network: { unrestricted: false, bind: [], connect: [443], unix: [] },
    env: ["A"],
    bestEffort: false,
    frozen: ["/home/p/.git/hooks"],
    hidden: ["/state"],
  };
}

const repository = { top: "/home/p", gitDir: "/trees/p", commonDir: "/trees" };

test("what holds the working folder or the git folders can only be read, and executed where it could be", () => {
  const before = policy({ rw: ["/home", "/cache"], rwx: ["/home/p", "/trees", "/tmp"] });
  expect(withoutProject(before, "/home/p/sub", repository)).toEqual({
    ...before,
    filesystem: {
      list: [],
      ro: ["/ro", "/home"],
      rox: ["/rox", "/home/p", "/trees"],
      rw: ["/cache"],
      rwx: ["/tmp"],
    },
  });
});

test("folders beside it and below it stay as they are", () => {
  const before = policy({ rwx: ["/home/p/sub/build", "/home/p/subway"] });
  expect(withoutProject(before, "/home/p/sub", undefined)).toEqual(before);
});

test("the whole of a git folder, also where only a part of it is granted", () => {
  const { filesystem } = withoutProject(policy({ rw: ["/trees/objects"] }), "/elsewhere", repository);
  expect(filesystem.rw).toEqual([]);
  expect(filesystem.ro).toContain("/trees/objects");
});
