/** Other hosts: what reaching them, a call there, and bringing ollie-remote there cost, beside what OpenSSH needs for the same. */
import { appendFileSync, copyFileSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type Client, type Host, startClient } from "../rig/rig.ts";
import { type Figure, median } from "./figure.ts";
import type { Asked, Measured } from "./remote.child.ts";

const program = join(import.meta.dir, "../../dist/ollie-remote");
const rounds = 7;
/** Milliseconds after a call until its daemon waits. */
const settling = 2000;
/** Milliseconds there and back. */
const distances = [0, 50];

export async function remote(): Promise<Figure[]> {
  const client = await startClient();
  try {
    const figures: Figure[] = [];
    for (const rtt of distances) {
      const link = rtt > 0 ? { link: { delay: rtt / 2 } } : {};
      const host = await client.startHost({
        name: `at${rtt}`,
        users: { alice: "bash", bob: "bash" },
        ...link,
      });
      const driver = new Driver(client);
      try {
        figures.push(...(await way(client, host, driver, rtt)));
        figures.push(...(await calls(driver, host, rtt)));
        if (rtt === 0) figures.push(...(await memory(driver, host)));
      } finally {
        await driver.stop();
      }
    }
    return figures;
  } finally {
    await client.close();
  }
}

/** To a host and to a program there. */
async function way(client: Client, host: Host, driver: Driver, rtt: number): Promise<Figure[]> {
  const target = `alice@${host.name}`;
  // The same bytes that ollie sends, as plain OpenSSH sends them.
  const first = await driver.measure({ what: "boot", target });
  const bytes = readFileSync(program).subarray(0, first.uploaded);
  const plainUpload = await timed(() => client.ssh(host, "bob", "cat > f", { stdin: bytes, limit: 300_000 }));

  const ours: number[] = [];
  const plain: number[] = [];
  for (let round = 0; round < rounds; round++) {
    plain.push(await timed(() => client.ssh(host, "alice", "true")));
    ours.push((await driver.measure({ what: "boot", target })).took);
  }

  const next = mkdtempSync(join(tmpdir(), "ollie-next-"));
  try {
    copyFileSync(program, join(next, "ollie-remote"));
    appendFileSync(join(next, "ollie-remote"), "another version");
    const upgrade = await driver.measure({ what: "boot", target, programs: next });
    return [
      {
        name: `connect and hello, ${rtt} ms away, over ssh host true`,
        value: median(ours) / median(plain),
        unit: "x",
        most: 1.1,
      },
      {
        name: `first upload, ${rtt} ms away, speed over ssh host 'cat > f'`,
        value: plainUpload / first.took,
        unit: "x",
        least: 0.8,
      },
      { name: `bytes of an upgrade, ${rtt} ms away`, value: upgrade.uploaded / 2 ** 20, unit: "MB", most: 1 },
    ];
  } finally {
    rmSync(next, { recursive: true });
  }
}

/** Operations of a session that stands. */
async function calls(driver: Driver, host: Host, rtt: number): Promise<Figure[]> {
  const target = `alice@${host.name}`;
  await driver.measure({ what: "attach", target });
  const there = await driver.measure({ what: "calls", target, count: 1 });
  const [one, oneHere] = await overhead(driver, target, 1);
  const [many, manyHere] = await overhead(driver, target, 20);
  const over = "over what the host's engine needs for the same";
  return [
    { name: `a call, ${rtt} ms away, ${over}`, value: one - oneHere, unit: "ms", most: rtt + 5 },
    { name: `20 calls at once, ${rtt} ms away, ${over}`, value: many - manyHere, unit: "ms", most: rtt + 20 },
    { name: `a call, ${rtt} ms away, all of it`, value: one, unit: "ms" },
    { name: `20 calls at once, ${rtt} ms away, all of it`, value: many, unit: "ms" },
    { name: `first call of a session, ${rtt} ms away`, value: there.took, unit: "ms" },
  ];
}

async function memory(driver: Driver, host: Host): Promise<Figure[]> {
  const target = `alice@${host.name}`;
  const daemon = host.processes("alice").find(({ argv }) => argv.includes("daemon"))!;
  const resident = () => {
    const status = readFileSync(`/proc/${daemon.pid}/status`, "utf8");
    const of = (name: string) => Number(new RegExp(`${name}:\\s+(\\d+)`).exec(status)![1]) / 1024;
    return { now: of("VmRSS"), most: of("VmHWM") };
  };
  await Bun.sleep(settling);
  const idle = resident().now;
  // From now on the most is counted anew (proc_pid_clear_refs(5)).
  writeFileSync(`/proc/${daemon.pid}/clear_refs`, "5");
  await driver.measure({ what: "output", target, count: 1_000_000_000 });
  return [
    { name: "memory of a session's daemon that waits", value: idle, unit: "MB", most: 60 },
    { name: "the most while 1 GB of output passed", value: resident().most, unit: "MB", most: 80 },
  ];
}

async function timed(work: () => Promise<{ status: number; stderr: string }>): Promise<number> {
  const began = performance.now();
  const { status, stderr } = await work();
  if (status !== 0) throw new Error(`ssh failed: ${stderr}`);
  return performance.now() - began;
}

/** Milliseconds that so many calls take there and, in turns with them, in an engine here. */
async function overhead(driver: Driver, target: string, count: number): Promise<[number, number]> {
  await driver.measure({ what: "calls", count });
  const there: number[] = [];
  const here: number[] = [];
  for (let round = 0; round < rounds; round++) {
    there.push((await driver.measure({ what: "calls", target, count })).took);
    here.push((await driver.measure({ what: "calls", count })).took);
  }
  return [median(there), median(here)];
}

/** remote.child.ts in the network of the client. */
class Driver {
  readonly #child: Bun.Subprocess<"pipe", "pipe", "inherit">;
  readonly #answers: AsyncIterator<string>;

  constructor(client: Client) {
    this.#child = Bun.spawn([...client.inside, process.execPath, join(import.meta.dir, "remote.child.ts")], {
      env: client.env,
      stdin: "pipe",
      stdout: "pipe",
      stderr: "inherit",
    });
    this.#answers = lines(this.#child.stdout);
  }

  async measure(asked: Asked): Promise<Measured> {
    this.#child.stdin.write(`${JSON.stringify(asked)}\n`);
    this.#child.stdin.flush();
    const { value, done } = await this.#answers.next();
    if (done) throw new Error(`${asked.what} could not be measured`);
    return JSON.parse(value) as Measured;
  }

  async stop(): Promise<void> {
    this.#child.stdin.write("\n");
    this.#child.stdin.end();
    const killer = setTimeout(() => this.#child.kill(), 5000);
    await this.#child.exited;
    clearTimeout(killer);
  }
}

async function* lines(stream: ReadableStream<Uint8Array>): AsyncGenerator<string> {
  let text = "";
  const decoder = new TextDecoder();
  for await (const chunk of stream) {
    text += decoder.decode(chunk, { stream: true });
    const whole = text.split("\n");
    text = whole.pop()!;
    yield* whole;
  }
}
