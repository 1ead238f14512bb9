/** The compiled program itself: what its first installation costs, and what the next version. */
import { afterAll, expect, setDefaultTimeout, test } from "bun:test";
import { mkdirSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { compile } from "../../../src/build/compile.ts";
import { ownTarget } from "../../../src/build/targets.ts";
import { sha256 } from "../../../src/remote/bootstrap/digest.ts";
import { lacksPrograms } from "../../needs.ts";
import { Host } from "./local.ts";

setDefaultTimeout(120_000);

const folder = mkdtempSync(join(tmpdir(), "ollie-upgrade-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

/** A folder as dist/ is, with the ollie-remote of that version. */
async function built(version: string): Promise<string> {
  const path = join(folder, version);
  mkdirSync(path);
  const target = ownTarget();
  const build = { version, commit: "unknown", target };
  await compile("ollie-remote", join(path, "ollie-remote"), build, undefined);
  // Under its full name: the tests run from the sources, which do not know for which target they are built.
  await Bun.write(join(path, `ollie-remote-${target}`), Bun.file(join(path, "ollie-remote")));
  return path;
}

test("a new version on the same Bun costs less than a MB, and arrives as it is", async () => {
  const host = new Host();
  try {
    const first = await host.boot({ programs: await built("0.1.0") });
    first.channel.close();
    expect(first.uploaded).toBeGreaterThan(20e6);
    const next = await built("0.1.0-with-another-version-of-another-length");
    const second = await host.boot({ programs: next });
    second.channel.close();
    expect([second.hit, second.uploaded > 0, second.uploaded < 1024 * 1024]).toEqual([false, true, true]);
    const file = join(host.bin, `ollie-remote-${second.digest}`);
    expect(second.digest).toBe(sha256(readFileSync(join(next, "ollie-remote"))));
    expect(sha256(readFileSync(file))).toBe(second.digest);
    const said = Bun.spawnSync([file, "--ok"], { env: {} });
    expect(said.stdout.toString()).toBe(
      `ollie-remote 0.1.0-with-another-version-of-another-length ${ownTarget()}\n`,
    );
    console.info(`uploaded: ${first.uploaded} bytes at first, ${second.uploaded} for the next version`);
  } finally {
    host.remove();
  }
});

/** Bun keeps what it runs behind the ELF sections that strip keeps: what is left is Bun, which ends well and says something else. */
test.skipIf(lacksPrograms("strip"))("a program that was stripped is found out", async () => {
  const path = await built("0.2.0");
  Bun.spawnSync(["strip", join(path, `ollie-remote-${ownTarget()}`)], { env: {} });
  const host = new Host();
  try {
    await expect(host.boot({ programs: path })).rejects.toMatchObject({
      code: "boot.selftest",
      message: expect.stringContaining("was it stripped?"),
    });
  } finally {
    host.remove();
  }
});
