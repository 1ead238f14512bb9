/** The client's end of the measurements of remote.ts, in the network of the rig: a question a line, an answer a line. */

import { boot } from "../../src/remote/bootstrap/boot.ts";
import { programsFolder } from "../../src/remote/bootstrap/programs.ts";
import { Connections } from "../../src/remote/client/connections.ts";
import { RemoteLink } from "../../src/remote/client/link.ts";
import { LocalTools } from "../../src/remote/client/tools/local.ts";
import { loadRemotes, type Profile } from "../../src/remote/policy/remotes.ts";
import { connect } from "../../src/ssh/connect.ts";
import { Host, request, run as runOn } from "../remote/host/ops/ground.ts";

export interface Asked {
  /**
   * `boot`: to the hello. `attach`: a session. `calls`: so many at once; without a target by the engine of a host in this process, which is
   * what they cost where nothing lies between. `output`: a program that prints so many bytes.
   */
  what: "boot" | "attach" | "calls" | "output";
  target?: string;
  programs?: string;
  count?: number;
}

export interface Measured {
  /** Milliseconds. */
  took: number;
  /** Bytes. */
  uploaded: number;
}

const signal = new AbortController().signal;
const links = new Map<string, RemoteLink>();

function profileOf(target: string): Profile {
  const profile = loadRemotes("/nonexistent/remotes.yaml").profileFor(target);
  profile.ssh.batch = true;
  return profile;
}

async function toHello(target: string, programs: string | undefined): Promise<number> {
  const profile = profileOf(target);
  const connection = await connect(profile.ssh, undefined, signal);
  const booted = await boot(connection, {
    ...profile.boot,
    programs: programs ?? programsFolder(),
    signal,
    onProgress() {},
  });
  for await (const chunk of booted.stdout) if (chunk.includes(10)) break;
  connection.close();
  return booted.uploaded;
}

async function attach(target: string): Promise<void> {
  const ignore = () => {};
  const link = new RemoteLink(
    {
      target,
      profile: profileOf(target),
      client: "bench",
      connections: new Connections(),
      workspace: { kind: "inplace", path: "~" },
      settings: () => ({ env: {}, sandboxes: {}, approved: [] }),
      tools: new LocalTools([]),
    },
    {
      progress: ignore,
      lost: (fault) => {
        throw fault;
      },
      keep: ignore,
      note: ignore,
      toolsChanged: ignore,
      toolsOutdated: ignore,
      asks: ignore,
    },
  );
  await link.connect(signal);
  await link.bootstrap(signal);
  await link.attach(signal);
  link.stands("ready");
  links.set(target, link);
}

async function run(target: string, program: string, ...args: string[]): Promise<void> {
  const steps = [{ program, args, env: {} }];
  const hooks = { output() {} };
  const { operations } = links.get(target)!;
  const report = await operations.run(Bun.randomUUIDv7(), { steps, sandbox: "", detach: false }, hooks).ended;
  if (report.status !== "exited" || report.code !== 0) throw new Error(JSON.stringify(report));
}

const here = new Host();
const engine = await here.open();

async function runHere(program: string): Promise<void> {
  const report = await runOn(engine, request([{ program, args: [], env: {} }]));
  if (report.status !== "exited" || report.code !== 0) throw new Error(JSON.stringify(report));
}

async function measure(asked: Asked): Promise<Measured> {
  const { what, target, programs, count = 1 } = asked;
  const call = () => (target === undefined ? runHere("/bin/true") : run(target, "/bin/true"));
  const began = performance.now();
  let uploaded = 0;
  if (what === "calls") await Promise.all(Array.from({ length: count }, call));
  else if (what === "boot") uploaded = await toHello(target!, programs);
  else if (what === "attach") await attach(target!);
  else await run(target!, "/usr/bin/head", "-c", String(count), "/dev/zero");
  return { took: performance.now() - began, uploaded };
}

for await (const line of console) {
  if (line === "") break;
  process.stdout.write(`${JSON.stringify(await measure(JSON.parse(line) as Asked))}\n`);
}
await engine.close();
here.remove();
process.exit(0);
