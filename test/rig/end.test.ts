/** What is left of a rig: nothing, however it ended. */
import { describe, expect, setDefaultTimeout, test } from "bun:test";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { until } from "../until.ts";
import { formatsOf } from "./hold.ts";
import { processes, variableOf } from "./processes.ts";
import { lacksArm64, lacksHosts, startClient } from "./rig.ts";

setDefaultTimeout(60_000);

/** Everything of a rig that this process or another one has made. */
function leftovers(owner: number) {
  return {
    processes: processes()
      .filter(({ pid }) => variableOf(pid, "OLLIE_RIG") === String(owner))
      .map(({ argv }) => argv.join(" ")),
    folders: readdirSync("/var/tmp").filter((name) => name.startsWith(`ollie-rig-${owner}-`)),
    formats: formatsOf((each) => each === String(owner)),
    interfaces: Bun.spawnSync(["ip", "-o", "link"], { env: { PATH: "/usr/sbin:/sbin:/usr/bin:/bin" } })
      .stdout.toString()
      .split("\n")
      .filter((line) => /^\d+: h\d+[@:]/.test(line)),
    mounts: readFileSync("/proc/mounts", "utf8")
      .split("\n")
      .filter((line) => line.includes(`ollie-rig-${owner}`)),
  };
}

const nothing = { processes: [], folders: [], formats: [], interfaces: [], mounts: [] };

describe.skipIf(lacksHosts() || lacksArm64())("when it ends", () => {
  test("by close, with programs that still run, nothing is left", async () => {
    const other = await startClient();
    const client = await startClient();
    const hosts = [
      await client.startHost({ link: {}, users: { alice: { home: "tiny" } } }),
      await client.startHost({ root: "arm64" }),
    ];
    await client.ssh(hosts[0]!, "alice", "setsid sleep 1000 >/dev/null 2>&1 &");
    await client.run(["sh", "-c", "setsid sleep 1000 >/dev/null 2>&1 &"]);
    const there = hosts[0]!.processes();
    expect(there.some(({ argv }) => argv[0] === "sleep")).toBe(true);
    await client.close();
    expect(there.filter(({ pid }) => existsSync(`/proc/${pid}`))).toEqual([]);
    // The other one, which has nothing to do with it, goes on.
    expect((await other.startHost()).exec("hostname")).toBe("host1\n");
    await other.close();
    expect(leftovers(process.pid)).toEqual(nothing);
  });

  test("by SIGKILL, all but a folder and an entry of the kernel ends with it, and the next run takes those away", async () => {
    const child = Bun.spawn([process.execPath, join(import.meta.dir, "end.child.ts")], {
      stdin: "ignore",
      stdout: "pipe",
      stderr: "inherit",
    });
    const { value } = await child.stdout.getReader().read();
    expect(new TextDecoder().decode(value)).toBe("ready\n");
    expect(leftovers(child.pid).formats.length).toBe(1);
    child.kill("SIGKILL");
    await child.exited;
    await until(
      "the hosts have ended",
      () => !leftovers(child.pid).processes.some((line) => line.includes("hold")),
    );
    await (await startClient()).close();
    expect(leftovers(child.pid)).toEqual(nothing);
  });
});
