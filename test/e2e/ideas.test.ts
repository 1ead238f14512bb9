/** Scripts that drive several agents from outside: the one that is shipped, and one in the manner of older scripts. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { World } from "./namespace-world.ts";

const roles = ["developer", "reviewer", "tester"];
const shells = [["dash"], ["bash"], ["busybox", "sh"]].filter(([program]) => Bun.which(program!));

/** A team that needs two reviews and two tests. */
const team = [
  { match: { agent: "developer", nth: 1 }, do: [{ text: "Version one\nof the code." }] },
  {
    match: { agent: "developer", user: "/Revise[^]*\\n\\n(.*)/", nth: 1 },
    do: [{ text: "Version two after: $1" }],
  },
  { match: { agent: "developer", user: "/Mend[^]*\\n\\n(.*)/" }, do: [{ text: "Version three after: $1" }] },
  { match: { agent: "reviewer", user: "Version one" }, do: [{ text: "PTAL: no comments\n" }] },
  {
    match: { agent: "reviewer", user: "/Version (two|three)/" },
    do: [{ reasoning: "LGTM?" }, { text: "LGTM\n" }],
  },
  { match: { agent: "tester", user: "Version two" }, do: [{ text: "Rejected\n\nit crashes" }] },
  { match: { agent: "tester", user: "Version three" }, do: [{ text: "I ran it.\nApproved" }] },
];

/** A script as they were written for a mount, with every access to a file of the tree made by `ollie-9p`. */
const older = `
cwd=\${1:?usage: $0 <cwd>}
fifo=$(mktemp -u) && mkfifo "$fifo"
write() { ollie-9p write "$1"; }
cat() { ollie-9p read "$1"; }
# Both files are open when the first line has come.
open_statewait() { ollie-9p read "s/$1/state" "s/$1/statewait" > "$fifo" & exec 3< "$fifo"; read -r _ <&3; }

echo "name=developer agent=developer cwd=$cwd" | write s/new
echo "name=reviewer  agent=reviewer  cwd=$cwd" | write s/new
echo "name=tester    agent=tester    cwd=$cwd" | write s/new

send() {
    sid=$1; shift
    open_statewait $sid
    printf '%s' "$*" | write s/$sid/prompt
    while true; do
        read -r _ <&3 && { exec 3<&- 2>/dev/null; break; }
        exec 3<&-
        [ "$(cat s/$sid/state)" != "idle" ] && break
        open_statewait $sid
    done
    until [ "$(cat s/$sid/state)" = "idle" ]; do sleep 0.05; done
    cat s/$sid/chat | tail -c +$(($(cat s/$sid/offset) + 1))
}

reply=$(send developer "Implement a function that parses a JSON config file.")
while true; do
    review=$(send reviewer "Review the following code. Reply LGTM if ready, or PTAL with feedback.

$reply")
    if ! printf '%s' "$review" | grep -v '^\\[\\[\\[' | grep -qi "^LGTM"; then
        reply=$(send developer "Revise based on this feedback:

$review")
        continue
    fi
    result=$(send tester "Test the following code. Reply Approved if all tests pass, or Rejected with details.

$reply")
    if printf '%s' "$result" | grep -qi "Approved"; then
        printf '%s\\n' "$reply"
        break
    fi
    reply=$(send developer "Mend the following failures:

$result")
done
rm -f "$fifo"
`;

for (const shell of shells)
  describe(`under ${shell.join(" ")}`, () => {
    describe("with a scripted team", () => {
      let world: World;
      beforeAll(async () => {
        world = await World.start({ rules: team });
      });
      afterAll(() => world.stop());

      const loop = (...args: string[]) =>
        world.home.run([...shell, join(world.home.config, "scripts/examples/review-loop"), ...args]);

      test("the shipped example goes on until the tester approves, and prints the code", async () => {
        const said = await loop(world.home.work, "/proc is what to parse");
        expect(said).toEqual({ status: 0, stdout: "Version three after: it crashes\n", stderr: "" });
        expect(await world.read("s/developer/prompt.prev")).toStartWith(
          "Mend what failed in the tests:\n\nRejected",
        );
        expect(await world.read("s/developer/chat")).toContain("\n/proc is what to parse\n");
        expect(await world.read("s/developer/chat")).toContain("\nVersion two after: PTAL: no comments\n");
        expect(await world.read("s/reviewer/chat")).toContain("Version one\nof the code.\n");
        for (const role of roles) expect(await world.read(`s/${role}/state`)).toBe("idle\n");
      });

      test("it says what is wrong, and ends", async () => {
        expect(await loop()).toMatchObject({ status: 2, stdout: "" });
        expect(await loop("/nowhere/at/all")).toMatchObject({ stdout: "" });
        const again = await loop(world.home.work);
        expect(again).toMatchObject({
          status: 1,
          stdout: "",
          stderr: expect.stringContaining("session developer exists"),
        });
        for (const role of roles) await world.client.remove(`session/${role}`);
        // No rule answers this task twice.
        const stuck = await loop(world.home.work, "x");
        expect(stuck.status).not.toBe(0);
        expect(stuck.stderr).toContain("review-loop: the developer could not answer");
      });
    });

    describe("with the built-in rehearsal", () => {
      let world: World;
      beforeAll(async () => {
        world = await World.start({ rehearsal: true });
      });
      afterAll(() => world.stop());

      test("the shipped example ends and prints the reply", async () => {
        const path = join(world.home.config, "scripts/examples/review-loop");
        const { status, stdout, stderr } = await world.home.run([...shell, path, "."]);
        expect([status, stderr]).toEqual([0, ""]);
        expect(stdout).toContain("This is ollie's scripted rehearsal, not a model.");
        expect(await world.read("session/idx")).toContain(
          `tester\ttester\tidle\tscript\tscript\t${world.home.work}\n`,
        );
        for (const role of roles) await world.client.remove(`session/${role}`);
      });

      test("an older script, which waits with statewait, ends and prints the reply", async () => {
        const path = join(world.home.folder, "older");
        writeFileSync(path, older);
        const { status, stdout, stderr } = await world.home.run([...shell, path, world.home.work]);
        expect([status, stderr]).toEqual([0, ""]);
        expect(stdout).toContain("This is ollie's scripted rehearsal, not a model.");
        for (const role of roles) expect(await world.read(`s/${role}/chat`)).toMatch(/^\[\[\[user /);
      });
    });
  });
