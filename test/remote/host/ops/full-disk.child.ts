/**
 * Runs on a file system of 24 MiB, which its temporary folder is on: operations run, the disk becomes full, they end. Says, as JSON, what is known
 * of them then, and what the next daemon knows.
 */
import { rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { call, ended, Host, request, sh } from "./ground.ts";

const host = new Host();
const filler = join(host.top, "filler");

function fill(): void {
  for (const size of [65536, 4096, 1])
    try {
      for (;;) writeFileSync(filler, Buffer.alloc(size), { flag: "a" });
    } catch {
      // Full now.
    }
}

const wait = "until [ -e go ]; do sleep 0.02; done";
host.tool("talk", `${wait}; seq 3000`);
const first = await host.open();
const asked = [
  request([sh(`echo before; ${wait}; seq 100000; exit 3`)]),
  request([call("talk")]),
  request([sh(`echo before; ${wait}; seq 100000; exit 4`)], { detach: true }),
];
for (const each of asked) await first.start(each);
const begun = ({ streams }: { streams: Record<string, number> }) => (streams.out ?? 0) > 0;
while (![asked[0]!, asked[2]!].every(({ opId }) => begun(first.get(opId)))) await Bun.sleep(10);
writeFileSync(join(host.cwd, "go"), "");
fill();
const before = await Promise.all(asked.map(({ opId }) => ended(first, opId)));
const refused = async (operations: typeof first) =>
  operations.start(request([sh("echo more >> ran")])).then(
    () => "run",
    (error) => error.code as string,
  );
fill();
const full = await refused(first);
await first.close();
const second = await host.open();
const after = asked.map(({ opId }) => second.get(opId));
const fullStill = await refused(second);
rmSync(filler);
const more = request([sh("echo fine")]);
await second.start(more);
const fine = await ended(second, more.opId);
await second.close();
console.log(JSON.stringify({ before, after, full, fullStill, fine, log: host.log }));
