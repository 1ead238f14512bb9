import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import type { TextLog } from "../../src/store/text-log.ts";
import { FakeJob } from "./fake-job.ts";
import type { FakeLog } from "./fake-parts.ts";
import { refusal, type Served, send, serve, take } from "./serve.ts";

let served: Served;
let job: FakeJob;
beforeEach(async () => {
  served = await serve();
  job = new FakeJob(served.session, "1");
  served.session.jobList = [job];
});
afterEach(async () => {
  await served[Symbol.asyncDispose]();
});

const path = "session/a/job";
const listing = async (at: string) =>
  (await served.client.readDir(at)).map(
    ({ name, mode }) => `${name} ${(mode & 0o777).toString(8).padStart(4, "0")}`,
  );
const read = (name: string) => served.client.readText(`${path}/1/${name}`);

describe("the files of a job", () => {
  test("are these", async () => {
    expect(await listing(path)).toEqual(["1 0755"]);
    expect(await listing(`${path}/1`)).toEqual([
      "cmd 0444",
      "ctl 0200",
      "exit 0444",
      "out 0444",
      "state 0444",
      "statewait 0444",
    ]);
  });

  test("show what it is and how it ended", async () => {
    expect(await read("cmd")).toBe("shell: sleep 100\n");
    expect([await read("state"), await read("exit")]).toEqual(["running\n", ""]);
    const before = await served.client.stat(`${path}/1/exit`);
    job.become("exited: 0");
    expect([await read("state"), await read("exit")]).toEqual(["exited: 0\n", "0\n"]);
    const after = await served.client.stat(`${path}/1/exit`);
    expect(after.qid.path).toBe(before.qid.path);
    expect(after.qid.vers).not.toBe(before.qid.vers);
    expect(after.mtime).toBeGreaterThan(before.mtime);
  });

  test("can be reached from s/ as well, where they are not listed", async () => {
    expect(await served.client.readText("s/a/job/1/state")).toBe("running\n");
    expect((await served.client.readDir("s/a")).map(({ name }) => name)).not.toContain("job");
  });

  test("take verbs, or say which there are", async () => {
    const ctl = await served.client.openFile(`${path}/1/ctl`, 1);
    await send(ctl, "kill\n");
    expect(job.told).toEqual(["kill"]);
    expect(await refusal(send(ctl, "pause\n"))).toContain("unknown verb pause; there are kill signal");
  });

  test("have fixed names, as has their folder", async () => {
    expect(await refusal(served.client.wstat(`${path}/1`, { name: "2" }))).toContain("fixed name");
    expect(await refusal(served.client.readText(`${path}/2/state`))).toContain("session a has no job 2");
    expect(await refusal(served.client.readText(`${path}/1/log`))).toContain("a job has no file log");
  });
});

describe("out", () => {
  test("is read as it grows", async () => {
    const fid = await served.client.openFile(`${path}/1/out`);
    const log = job.out as FakeLog;
    log.add("one\n");
    expect(await take(fid, 0)).toBe("one\n");
    expect(await take(fid, 4)).toBe("");
    log.add("two\n");
    expect(await take(fid, 4)).toBe("two\n");
    expect((await served.client.stat(`${path}/1/out`)).length).toBe(8);
  });

  test("leads its reader over what is not kept, and back", async () => {
    job.out = withHole("head|", 100, "|tail");
    const fid = await served.client.openFile(`${path}/1/out`);
    expect(await take(fid, 0)).toBe("head|");
    expect(await take(fid, 5)).toBe("|tail");
    expect(await take(fid, 10)).toBe("");
    expect(await take(fid, 2, 2)).toBe("ad");
    expect(await take(fid, 7)).toBe("ail");
    expect(await take(fid, 0)).toBe("head|");
    const other = await served.client.openFile(`${path}/1/out`);
    expect(await take(other, 101)).toBe("tail");
  });
});

/** A log that has these two texts, the second from an offset on, and nothing between. */
function withHole(head: string, from: number, tail: string): TextLog {
  return {
    length: from + tail.length,
    kept: (offset) => (offset < head.length ? offset : Math.max(offset, from)),
    read: (offset, count) =>
      Buffer.from(offset < head.length ? head.slice(offset) : tail.slice(offset - from)).subarray(0, count),
  };
}

describe("statewait", () => {
  const open = () => served.client.openFile(`${path}/1/statewait`);

  test("answers when the job ends, and what was over at the open at once", async () => {
    const fid = await open();
    const answer = take(fid);
    while (job.watchers === 0) await served.client.stat("");
    job.become("killed: SIGTERM");
    expect(await answer).toBe("killed: SIGTERM\n");
    expect(await take(await open())).toBe("killed: SIGTERM\n");
  });

  test("does not answer twice on one open file: there is no other change", async () => {
    job.become("lost");
    const fid = await open();
    expect(await take(fid)).toBe("lost\n");
    const again = take(fid);
    while (job.watchers === 0) await served.client.stat("");
    await job.remove();
    expect(await refusal(again)).toContain("file does not exist: job removed");
  });
});

describe("removing", () => {
  test("with rm -r takes the job and nothing else", async () => {
    for (const { name } of await served.client.readDir(`${path}/1`))
      await served.client.remove(`${path}/1/${name}`);
    expect(job.removed).toBe(false);
    await served.client.remove(`${path}/1`);
    expect(job.removed).toBe(true);
    expect(await listing(path)).toEqual([]);
    await served.client.remove(path);
    expect(served.session.removed).toBe(false);
  });
});

describe("a tool", () => {
  test("reads and ends jobs of its session, but removes none", async () => {
    const tool = await served.tool(served.agent);
    expect(await tool.readText(`${path}/1/state`)).toBe("running\n");
    const ctl = await tool.openFile(`${path}/1/ctl`, 1);
    await send(ctl, "kill\n");
    expect(job.told).toEqual(["kill"]);
    expect(await refusal(tool.remove(`${path}/1`))).toStartWith("permission denied");
    expect(job.removed).toBe(false);
  });

  test("of another session knows of none, also where it may prompt the agents", async () => {
    const other = await served.runtime.createSession(new Map([["name", "b"]]));
    const tool = await served.tool(other.agents()[0]!);
    expect(await refusal(tool.readText(`${path}/1/state`))).toStartWith("file does not exist");
    served.session.keys.set("share", "b");
    expect(await refusal(tool.readText(`${path}/1/state`))).toStartWith("file does not exist");
  });
});
