/** A cable with properties. */
import { afterAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import { until } from "../until.ts";
import { type Host, lacksHosts, startHost } from "./rig.ts";

setDefaultTimeout(60_000);

const possible = !lacksHosts();
const { client, host } = possible
  ? await startHost({ link: { delay: 20, jitter: 5, loss: 0.005 } })
  : { client: undefined!, host: undefined! };
afterAll(() => client?.close());

async function ping(to: Host, count: number) {
  const { stdout } = await client.run([
    "ping",
    "-q",
    "-i",
    "0.05",
    "-W",
    "1",
    "-c",
    String(count),
    to.address,
  ]);
  return {
    received: Number(/(\d+) received/.exec(stdout)![1]),
    least: Number(/rtt min\/avg\/max\/mdev = ([\d.]+)/.exec(stdout)?.[1]),
  };
}

describe.skipIf(!possible)("a link", () => {
  test("takes its time in both directions", async () => {
    expect((await ping(host, 5)).least).toBeGreaterThanOrEqual(40);
  });

  test("carries all bytes nevertheless", async () => {
    const bytes = Buffer.alloc(2_000_000, "some bytes ");
    const sum = new Bun.CryptoHasher("sha256").update(bytes).digest("hex");
    const { stdout } = await client.ssh(host, "alice", "sha256sum", { stdin: bytes });
    expect(stdout).toBe(`${sum}  -\n`);
  });

  test("loses what it is to lose", async () => {
    const bad = await client.startHost({ name: "bad", link: { loss: 0.5 } });
    const { received } = await ping(bad, 60);
    // Of sixty that have to get through twice, fifteen on average.
    expect(received).toBeGreaterThan(0);
    expect(received).toBeLessThan(45);
  });

  test("that is cut tells neither end, and loses nothing of a connection when it is mended", async () => {
    const child = client.spawn(["ssh", "alice@host1", "while sleep 0.05; do echo tick; done"]);
    let said = "";
    void (async () => {
      for await (const chunk of child.stdout) said += Buffer.from(chunk).toString();
    })();
    await until("it ticks", () => said);
    await host.blackHole(true);
    expect((await ping(host, 3)).received).toBe(0);
    const before = said;
    await Bun.sleep(300);
    expect(said).toBe(before);
    expect(child.exitCode).toBeNull();
    await host.blackHole(false);
    await until("it ticks again", () => said.length > before.length);
    expect(said.replaceAll("tick\n", "")).toBe("");
    child.kill();
    await child.exited;
  });
});
