/**
 * Runs on a file system of 16 MiB, which its temporary folder is on. A server is killed while that is full and started again; says, as
 * JSON, what can be done then, and once there is room again.
 */
import { existsSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { dist, Home, type Outcome } from "./harness.ts";

const filler = join(tmpdir(), "filler");

function fill(): void {
  for (const size of [4096, 1])
    try {
      for (;;) writeFileSync(filler, Buffer.alloc(size), { flag: "a" });
    } catch {
      // Full now.
    }
}

const home = new Home({ OLLIE_BACKEND: "script" });
const o = (...args: string[]) => home.run([join(dist, "o"), ...args]);
const pid = async () => JSON.parse((await home.olliesrv("status", "--json")).stdout).pid as number;
const end = ({ status, stderr }: Outcome) => [
  status,
  stderr.replace(/.*no space left on device.*\n/i, "no space left on device"),
];

/** Only what has to do with the disk. */
async function tries(): Promise<Record<string, unknown>> {
  const start = await home.olliesrv("start");
  // What the last server had left for itself alone is gone.
  fill();
  return {
    start: [start.status, start.stdout.replace(/\d+ on .*/, "N")],
    second: (await home.olliesrv("start")).stderr.replaceAll(`${await pid()}`, "N"),
    chat: (await o("read", "chat")).stdout.includes("\nbefore\n"),
    prompt: end(await o("prompt", "$ echo more")),
  };
}

const facts: Record<string, unknown> = {};
try {
  await home.olliesrv("start");
  await o("new", "name=s");
  home.env.session = "s";
  await o("prompt", "$ echo before");
  await o("wait");
  fill();
  process.kill(await pid(), "SIGKILL");
  facts.killed = await tries();
  facts.stop = (await home.olliesrv("stop")).status;
  facts.stopped = await tries();
  rmSync(filler);
  facts.room = end(await o("ask", "$ echo again"));
  facts.restart = (await home.olliesrv("restart")).status;
  facts.chat = (await o("read", "chat")).stdout.match(/^(before|again|more)$/gm);
} finally {
  await home.olliesrv("stop");
  home.remove();
}
facts.removed = !existsSync(home.folder);
console.log(JSON.stringify(facts));
