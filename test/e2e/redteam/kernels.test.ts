/** What a server says, and does, where the kernel offers less: a sandbox that is not there must not seem to be. */
import { expect, test } from "bun:test";
import { Victim } from "./victim.ts";

async function on(host: object, look: (victim: Victim) => Promise<void>): Promise<void> {
  const victim = await Victim.start(host);
  try {
    await look(victim);
  } finally {
    await victim.stop();
  }
}

test("without Landlock nothing runs, and the user is told what would change that", () =>
  on({ without: "landlock" }, async (victim) => {
    const result = await victim.run("echo ran");
    expect(result).toContain(
      "tools cannot be confined on this host (landlock: OLLIE_SANDBOX_WITHOUT names it",
    );
    expect(result).toContain("general.best_effort: true");
    expect(result).not.toContain("ran\n");
    expect(await victim.read("version")).toContain("sandbox: off");
  }));

test("without Landlock, and with the user's word, everything runs and every result says so", () =>
  on({ without: "landlock", sandbox: "general:\n  best_effort: true\n" }, async (victim) => {
    expect(await victim.run("echo ran")).toBe("ran\n[unsandboxed]\n");
  }));

test("a project cannot give that word", () =>
  on({ without: "landlock" }, async (victim) => {
    await victim.server.run(["sh", "-c", "printf 'general:\\n  best_effort: true\\n' >.ollie-sandbox.yaml"]);
    expect(await victim.run("echo ran", await victim.session())).not.toContain("ran\n");
  }));

test("without namespaces and the filter, version says what tools can do", () =>
  on({ without: "namespaces,seccomp" }, async (victim) => {
    const version = await victim.read("version");
    expect(version).toContain("sandbox: partial");
    expect(version).toContain("sockets: open to tools");
    for (const what of ["sockets of other programs", "limits of the user's other processes", "shared memory"])
      expect(version).toMatch(new RegExp(`^tools can: .*${what}`, "m"));
    const result = await victim.run(`cat ${victim.outside}/file; echo x >${victim.outside}/file`);
    expect(result).toMatch(/denied/i);
    expect(result).toContain("sandbox: partial");
  }));
