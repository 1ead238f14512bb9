import { afterAll, expect, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import fc from "fast-check";
import { fromHard, narrow, policyHash, renarrow, stillHolds } from "../../../src/remote/policy/effective.ts";
import { clientPolicy, hardPolicy } from "../../../src/remote/policy/keys.ts";
import { openPolicy } from "../../../src/remote/policy/session-policy.ts";

const folder = mkdtempSync(join(tmpdir(), "ollie-policy-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const names = fc.subarray(["*", "cargo", "git", "java", "sh"]);
const variables = fc.subarray(["*", "A", "B", "RUST_LOG"]);
const globs = fc.subarray(["**", "src/**", "**/*.ts", "a/*", "b"]);
const flag = fc.boolean();
const number = fc.integer({ min: 1, max: 1_000_000 });
const client = fc.record(
  {
    allowed_programs: names,
    allowed_env: variables,
    allowed_env_refs: variables,
    inherited_env: fc.subarray(["LANG", "USER", "TZ"]),
    readable: globs,
    writable: globs,
    denied: globs,
    max_timeout_secs: number,
    max_output_bytes: number,
    max_read_bytes: number,
    max_write_bytes: number,
    max_list_entries: number,
    allow_session_sqlite: flag,
    allow_code_steps: flag,
    allow_elevated: flag,
    follow_inside: flag,
    require_landlock_abi: fc.integer({ min: 0, max: 9 }),
  },
  { requiredKeys: [] },
);
const hard = fc
  .tuple(
    client,
    fc.record({ max_args: number, program_paths: fc.constant({ git: "/opt/git" }) }, { requiredKeys: [] }),
  )
  .map(([a, b]) => ({ ...a, ...b }));
const paths = ["src", "src/x.ts", "a", "a/b", "a/b/c.ts", "b", ".env", "x/.git/config", "lib/x"];
const ground = { home: "/nowhere", environment: {}, folder };

/** Everything that a policy allows of what is asked here. */
function allows(policy: ReturnType<typeof fromHard>): Set<string> {
  const session = openPolicy(policy, {}, ground);
  const all = new Set<string>();
  const works = (what: string, call: () => void) => {
    try {
      call();
      all.add(what);
    } catch (error) {
      if ((error as { code?: string }).code === "op.program") all.add(what);
    }
  };
  for (const path of paths)
    for (const access of ["read", "write"] as const)
      if (session.allowsPath(path, access)) all.add(`${access} ${path}`);
  for (const name of ["cargo", "git", "java", "sh", "nc"])
    works(`run ${name}`, () => session.checkProgram(name, "/"));
  for (const name of ["A", "B", "RUST_LOG", "LD_PRELOAD"])
    works(`set ${name}`, () => session.environmentFor({ [name]: "1" }));
  works("code", () => session.checkStep({ code: "x", lang: "sh" }));
  works("root", () => session.checkElevated());
  return all;
}

test("a client's policy never widens what the host allows, whatever it says", () => {
  fc.assert(
    fc.property(hard, client, (host, theirs) => {
      const holds = fromHard(hardPolicy.parse(host));
      const both = narrow(holds, clientPolicy.parse(theirs));
      const before = allows(holds);
      expect([...allows(both)].filter((what) => !before.has(what))).toEqual([]);
      for (const key of [
        "max_timeout_secs",
        "max_output_bytes",
        "max_read_bytes",
        "max_write_bytes",
        "max_args",
      ] as const)
        expect(both[key]).toBeLessThanOrEqual(holds[key]);
      expect(both.require_landlock_abi).toBeGreaterThanOrEqual(holds.require_landlock_abi);
      expect(both.program_paths).toEqual(holds.program_paths);
    }),
    { numRuns: 200 },
  );
});

test("what the client denies is denied, and what it does not list is not allowed", () => {
  fc.assert(
    fc.property(hard, client, (host, theirs) => {
      const alone = allows(narrow(fromHard({ denied: [] }), clientPolicy.parse(theirs)));
      const both = allows(narrow(fromHard(hardPolicy.parse(host)), clientPolicy.parse(theirs)));
      expect([...both].filter((what) => !alone.has(what))).toEqual([]);
    }),
    { numRuns: 200 },
  );
});

test("narrowing again changes nothing, and so the hash stays", () => {
  fc.assert(
    fc.property(hard, client, (host, theirs) => {
      const holds = fromHard(hardPolicy.parse(host));
      const once = narrow(holds, clientPolicy.parse(theirs));
      expect(narrow(once, clientPolicy.parse(theirs))).toEqual(once);
      expect(policyHash(renarrow(once, holds))).toBe(policyHash(once));
    }),
  );
});

test("the order in which lists are written does not change the hash", () => {
  const one = fromHard({ allowed_programs: ["git", "cargo"], denied: ["b", "a"], readable: ["x", "y"] });
  const two = fromHard({ readable: ["y", "x"], denied: ["a", "b", "a"], allowed_programs: ["cargo", "git"] });
  expect(policyHash(one)).toBe(policyHash(two));
});

test("a hard policy that has become narrower gives another hash, a wider one does not", () => {
  const made = narrow(fromHard({ allowed_programs: ["git", "cargo"], max_args: 10 }), {});
  const hash = policyHash(made);
  expect(
    policyHash(renarrow(made, fromHard({ allowed_programs: ["git", "cargo", "sh"], max_args: 20 }))),
  ).toBe(hash);
  expect(policyHash(renarrow(made, fromHard({ allowed_programs: ["git"], max_args: 10 })))).not.toBe(hash);
  expect(policyHash(renarrow(made, fromHard({ allowed_programs: ["git", "cargo"], max_args: 9 })))).not.toBe(
    hash,
  );
});

test("a session of an older program, which knew fewer keys, is still attached", () => {
  const { follow_inside: _, ...older } = fromHard({ allowed_programs: ["git"] });
  const made = older as ReturnType<typeof fromHard>;
  expect(stillHolds(made, fromHard({ allowed_programs: ["git", "sh"] }))).toBe(true);
  expect(stillHolds(made, fromHard({ allowed_programs: ["sh"] }))).toBe(false);
});

test("where programs are listed, variables have to be listed too", () => {
  const session = openPolicy(fromHard({ allowed_programs: ["git"] }), {}, ground);
  expect(() => session.environmentFor({ LD_PRELOAD: "/x.so" })).toThrow(/LD_PRELOAD .*allowed are none/);
});
