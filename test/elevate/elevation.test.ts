/** The gates before a call that wants out of the sandbox. What sudo does is tested with the real one, in test/e2e/sudo.test.ts. */
import { describe, expect, test } from "bun:test";
import { Elevation } from "../../src/elevate/elevation.ts";
import type { Answer } from "../../src/elevate/question.ts";
import { wishesOf } from "../../src/tools/wishes.ts";
import { toolWith, Workshop } from "../tools/helper.ts";
import { approvals } from "./helper.ts";

const tool = toolWith({ properties: { command: {}, elevated: {}, timeout: {} } }, "shell");
const context = new Workshop().ctx;

function call(args: Record<string, unknown>, more: { session?: object; cwd?: string; sudo?: boolean } = {}) {
  const said: string[] = [];
  const its = { ...tool, sudo: more.sudo ?? false };
  const asked = { elevated: true, ...args };
  return {
    session: more.session ?? session,
    tool: its,
    args: asked,
    wishes: wishesOf(its, asked),
    ctx: { ...context, cwd: more.cwd ?? context.cwd },
    say: (text: string) => void said.push(text),
    said,
  };
}
let session = {};

/** An elevation whose user gives this answer to everything. */
function answering(answer: Answer, sudo?: () => string | undefined) {
  const { approvals: all } = approvals();
  const reader = all.reader();
  let asked = 0;
  all.watch(() => {
    const question = reader.next();
    if (!question) return;
    asked++;
    queueMicrotask(() => all.answer(question.id, answer, "test"));
  });
  session = {};
  return {
    elevation: new Elevation(all, "here", sudo),
    get asked() {
      return asked;
    },
  };
}

const { signal } = new AbortController();

describe("what was allowed for the session", () => {
  test("is the same tool with the same arguments in the same folder, and nothing wider", async () => {
    const { elevation } = answering({ decision: "allow", scope: "session" });
    const allowed = { command: "make", env: { a: 1, b: [2] } };
    expect(await elevation.allow(call(allowed), signal)).toEqual({ approval: { scope: "session" } });
    expect(elevation.granted(call({ env: { b: [2], a: 1 }, command: "make" }))).toEqual({ scope: "session" });
    for (const other of [
      call({ ...allowed, command: "make " }),
      call({ ...allowed, timeout: 5 }),
      call({ command: "make" }),
      call({ ...allowed, env: { a: 1, b: ["2"] } }),
      call(allowed, { cwd: "/elsewhere" }),
      call(allowed, { session: {} }),
      call(allowed, { sudo: true }),
      { ...call(allowed), tool: { ...tool, path: "/another" } },
    ])
      expect(elevation.granted(other)).toBeUndefined();
  });

  test("is not what was allowed once, or denied", async () => {
    for (const answer of [
      { decision: "allow", scope: "once" },
      { decision: "deny", reason: "" },
    ] as const) {
      const { elevation } = answering(answer);
      await elevation.allow(call({ command: "make" }), signal);
      expect(elevation.granted(call({ command: "make" }))).toBeUndefined();
    }
  });
});

test("the user reads in chat what was asked, with nothing hidden, and what came of it", async () => {
  const { elevation } = answering({ decision: "deny", reason: "no" });
  const asked = call({ command: "rm x\u001b[1A" });
  expect(await elevation.allow(asked, signal)).toEqual({
    denied: "it needs the user's permission, which was denied (no)",
  });
  expect(asked.said).toEqual([
    expect.stringMatching(/^shell waits to be allowed.*\nrm x␛\[1A$/),
    "Denied: shell: no.",
  ]);
});

test("without sudo on the host nobody is asked", async () => {
  const user = answering({ decision: "allow", scope: "once" }, () => undefined);
  expect(await user.elevation.allow(call({}, { sudo: true }), signal)).toEqual({
    denied: "it needs sudo, which is not installed on this host",
  });
  expect(user.asked).toBe(0);
});
