/** Whatever is killed, and whenever: an operation runs once or not at all, and what is told of it is true. */
import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import { existsSync, mkdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { type Client, type Host, lacksHosts, startHost } from "../../rig/rig.ts";
import { build } from "../harness.ts";
import { type End, LinkClient } from "./link.ts";

setDefaultTimeout(300_000);

const possible = !lacksHosts();
const rounds = 25;
/** Operations that run side by side in a round. */
const together = 4;
/** Milliseconds from the questions to the kill, at most: a bit more than operations take. */
const latest = 250;

/** Numbers from 0 to 1, the same for the same seed (mulberry32). */
function numbers(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let t = Math.imul(state ^ (state >>> 15), 1 | state);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 2 ** 32;
  };
}

let client: Client;
let host: Host;

beforeAll(async () => {
  if (!possible) return;
  await build();
  ({ client, host } = await startHost({ link: { delay: 2 } }));
  await client.ssh(host, "alice", "mkdir made");
});
afterAll(() => client?.close());

/** SIGKILL for all processes of alice's whose words hold these. */
function killThere(...words: string[]): void {
  for (const { pid, argv } of host.processes("alice"))
    if (words.every((word) => argv.includes(word))) process.kill(pid, "SIGKILL");
}

/** Says that it begins, takes its time, says that it is done. Whoever runs twice says so twice. */
function operation(opId: string, seconds: number) {
  const script = `echo began >> ${opId}; echo out-${opId}; sleep ${seconds}; echo done >> ${opId}; echo end-${opId}`;
  return {
    opId,
    request: { steps: [{ program: "/bin/sh", args: ["-c", script], env: {} }], sandbox: "", detach: false },
  };
}

/** What has really happened. */
function ran(opId: string): { began: number; done: number } {
  const file = host.at(`/home/alice/made/${opId}`);
  const text = existsSync(file) ? readFileSync(file, "utf8") : "";
  const count = (word: string) => text.split("\n").filter((line) => line === word).length;
  return { began: count("began"), done: count("done") };
}

/** Why what is told is not true of what has happened; "" if it is. */
function lie(end: End, { began, done }: { began: number; done: number }, opId: string): string {
  if (began > 1 || done > 1) return `it ran ${began} times`;
  switch (end.status) {
    case "exited":
      if (end.code !== 0) return `status ${end.code}`;
      if (began !== 1 || done !== 1) return "it has not run to its end";
      return end.output === `out-${opId}\nend-${opId}\n`
        ? ""
        : `its output was ${JSON.stringify(end.output)}`;
    case "interrupted":
      return "";
    case "op.unknown":
      return began === 0 ? "" : "it has run";
    default:
      return `nothing had asked for ${end.status}`;
  }
}

describe.skipIf(!possible)("operations", () => {
  test("run at most once, and end in one way, whatever is killed at any instant", async () => {
    const seed = Number(process.env.SEED ?? Math.floor(Math.random() * 2 ** 31));
    const random = numbers(seed);
    const between = (low: number, high: number) => low + (high - low) * random();
    mkdirSync(join(client.folder, "links"), { recursive: true });
    const file = join(client.folder, "links/locator.json");
    const link = new LinkClient(client, "alice@host1", "/home/alice/made", file);
    const kills: Record<string, () => void | Promise<void>> = {
      client: async () => {
        await link.kill();
        link.start();
      },
      bridge: () => killThere("serve"),
      daemon: () => killThere("daemon"),
      sshd: () => host.killSshd("connections"),
      cable: async () => {
        await host.blackHole(true);
        await Bun.sleep(between(0, 300));
        await host.blackHole(false);
      },
    };
    const names = Object.keys(kills);
    const story: string[] = [];
    const problems: string[] = [];
    const ends: string[] = [];
    const seen = new Map<string, { began: number; done: number }>();

    for (let round = 0; round < rounds; round++) {
      const ops = Array.from({ length: together }, () =>
        operation(Bun.randomUUIDv7(), Math.round(between(0, 0.2) * 1000) / 1000),
      );
      // In the first one the host is found and the session is made before anything is killed.
      if (round === 0) {
        const first = operation(Bun.randomUUIDv7(), 0);
        link.ask(first);
        expect(await link.end(first.opId)).toMatchObject({ status: "exited", code: 0 });
      }
      for (const op of ops) link.ask(op);
      const name = names[Math.floor(random() * names.length)]!;
      const after = between(0, latest);
      await Bun.sleep(after);
      story.push(`round ${round}: ${name} killed after ${Math.round(after)} ms`);
      await kills[name]!();
      // A client that starts anew does not know what became of its questions, and asks no second time.
      if (name === "client") for (const { opId } of ops) if (!link.ended(opId)) link.ask({ opId });
      for (const { opId } of ops) {
        const end = await link.end(opId);
        ends.push(end.status);
        const counted = ran(opId);
        seen.set(opId, counted);
        const what = lie(end, counted, opId);
        if (what) problems.push(`${story.at(-1)}: ${opId} was told to be ${end.status}, but ${what}`);
        // Asked again, it is the same.
        link.forget(opId);
        link.ask({ opId });
        const again = await link.end(opId);
        if (again.status !== end.status || again.code !== end.code)
          problems.push(`${story.at(-1)}: ${opId} was ${end.status} and then ${again.status}`);
      }
    }
    // What was told to have ended, or not to be known, has not gone on since.
    for (const [opId, counted] of seen)
      if (!Bun.deepEquals(ran(opId), counted)) problems.push(`${opId} went on after its end was told`);
    await link.kill();
    // Most of what is killed has nothing to do with an operation itself: it goes on.
    expect(ends.length).toBe(rounds * together);
    expect(ends.filter((status) => status === "exited").length).toBeGreaterThan(ends.length / 3);
    if (problems.length > 0)
      throw new Error(`SEED=${seed}\n${problems.join("\n")}\n${story.join("\n")}\n${link.log.slice(-4000)}`);
  });
});
