/**
 * Runs on a file system of 16 MiB, which its temporary folder is on: a job prints before that is full, while it is, when there is room
 * again, and ends when it is full once more. Says, as JSON, what is known of it then.
 */
import { existsSync, mkdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { JobOutput } from "../../src/exec/job/output.ts";
import { startJob } from "../../src/exec/job/start.ts";
import type { Supervisor } from "../../src/exec/job/supervisor-process.ts";
import { watchJob } from "../../src/exec/job/watch.ts";
import { plainLaunch } from "../../src/exec/launch.ts";
import { until } from "./helper.ts";

const filler = join(tmpdir(), "filler");

function fill(): void {
  for (const size of [4096, 1])
    try {
      for (;;) writeFileSync(filler, Buffer.alloc(size), { flag: "a" });
    } catch {
      // Full now.
    }
}

/** The job prints a word 2000 times when a file in this folder, which is on another disk, asks for it. */
const talk = process.argv[2]!;
const script = `for word in before refused after late; do
  until [ -e "$1/$word" ]; do sleep 0.02; done
  i=0; while [ $i -lt 2000 ]; do echo $word; i=$((i + 1)); done
  : >"$1/$word.said"
done`;

async function say(word: string): Promise<void> {
  writeFileSync(join(talk, word), "");
  await until(`it has said ${word}`, () => existsSync(join(talk, `${word}.said`)));
}

const folder = join(tmpdir(), "job");
mkdirSync(folder);
let supervisor!: Supervisor;
const program = {
  argv: ["/bin/sh", "-c", script, "sh", talk],
  cwd: "/",
  env: { PATH: process.env.PATH! },
  stdin: "",
  launch: plainLaunch(),
};
await startJob(program, folder, async (its) => {
  supervisor = its;
});
const output = new JobOutput(() => folder);

await say("before");
await until("that is on disk", () => output.length === 2000 * 7);
fill();
await say("refused");
// The disk is tried again once in a second.
rmSync(filler);
await Bun.sleep(1200);
await say("after");
await until("that is on disk", () => text(output).endsWith("after\n"));
fill();
await say("late");
const { how, exit } = await watchJob(() => folder, supervisor, new AbortController().signal);
const all = text(output);
console.log(
  JSON.stringify({
    how,
    code: exit?.code,
    bytes: exit?.bytes,
    lost: exit!.lost > 0,
    whole: all.length + exit!.lost >= exit!.bytes,
    order: [...new Set(all.match(/^(before|after)$/gm))],
    notice: /\n\[… [\d,]+ bytes were lost here: .*no space left on device.*\]\n/i.test(all),
  }),
);

/** As a reader gets it, who is moved on where something is missing. */
function text(output: JobOutput): string {
  let all = "";
  for (let at = output.kept(0); at < output.length; at = output.kept(at)) {
    const bytes = output.read(at, 1 << 20);
    if (bytes.length === 0) break;
    all += Buffer.from(bytes).toString();
    at += bytes.length;
  }
  return all;
}
