/** What is brought to hosts in the tests. */
import { appendFileSync, copyFileSync, cpSync, mkdirSync, mkdtempSync, renameSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { dist } from "../harness.ts";

const top = join(import.meta.dir, "../../..");

/** A folder with another program than that of dist, which differs from it as little as the next version does. */
export function nextVersion(): string {
  const folder = mkdtempSync(join(tmpdir(), "ollie-next-"));
  const program = join(folder, "ollie-remote");
  copyFileSync(join(dist, "ollie-remote"), program);
  // Behind what the loader and Bun read.
  appendFileSync(program, folder);
  return folder;
}

/** A folder with the program for arm64. */
export async function forArm64(): Promise<string> {
  const folder = mkdtempSync(join(tmpdir(), "ollie-arm64-"));
  const build = Bun.spawn(
    [process.execPath, "build.ts", "--target", "linux-arm64", "--out", join(folder, "built")],
    { cwd: top, stdout: "ignore", stderr: "pipe" },
  );
  const said = await new Response(build.stderr).text();
  if ((await build.exited) !== 0) throw new Error(`no ollie-remote for arm64: ${said}`);
  mkdirSync(join(folder, "programs"));
  renameSync(
    join(folder, "built/linux-arm64/ollie-remote"),
    join(folder, "programs/ollie-remote-linux-arm64"),
  );
  cpSync(join(dist, "ollie-remote"), join(folder, "programs/ollie-remote"));
  return join(folder, "programs");
}
