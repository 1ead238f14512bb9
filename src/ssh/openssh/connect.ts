/** SSH by the system's own program: one master for the connection, one more process for each channel (`ControlMaster`, ssh_config(5)). */
import { spawn } from "node:child_process";
import { existsSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { CodedFault } from "../../fault.ts";
import { destinationArguments } from "../config/program.ts";
import type { Settings } from "../config/settings.ts";
import { Deadline } from "../deadline.ts";
import { sshFault } from "../fault.ts";
import { Tail } from "../flow.ts";
import { policyOf } from "../known/check.ts";
import type { Askpass, SshChannel, SshConnection, SshTarget } from "../transport.ts";
import { AskpassBroker, askpassEnvironment } from "./askpass.ts";
import { OpensshChannel } from "./channel.ts";
import { classify } from "./classify.ts";
import { configText } from "./config.ts";
import { makeFolder, masterOf, names } from "./folder.ts";

/**
 * Runs a master until stdin ends, which it does with this process, however that ends. ssh gets a moment to tell the processes it goes
 * through.
 */
const guarded = `exec 3<&0
"$@" 3<&- </dev/null & ssh=$!
{ read -r _ <&3; kill $ssh; sleep 2; kill -9 $ssh; } >/dev/null 2>&1 & guard=$!
exec 3<&-
wait $ssh; status=$?
kill $guard 2>/dev/null
exit $status`;
/** Between two looks whether the master stands. Milliseconds. */
const pause = 10;

export interface Attempt {
  target: SshTarget;
  settings: Settings;
  people: Askpass | undefined;
  program: string;
  signal: AbortSignal;
}

/** @throws Fault of the family `ssh` */
export async function connectOpenssh({
  target,
  settings,
  people,
  program,
  signal,
}: Attempt): Promise<SshConnection> {
  const { host, port, destination } = settings;
  const place = port === 22 ? host : `${host} port ${port}`;
  const folder = await makeFolder(program);
  const late = new AbortController();
  const limit = Math.min(target.connectTimeout, settings.connectTimeout ?? Number.POSITIVE_INFINITY);
  const deadline = new Deadline(limit, () =>
    late.abort(
      sshFault("ssh.timeout", `${place} does not answer within ${limit / 1000} s`, {
        retry: true,
        hint: "is the host up, and does a firewall let the port through?",
      }),
    ),
  );
  let broker: AskpassBroker | undefined;
  let master: Master | undefined;
  try {
    const policy = policyOf(target, settings.strict);
    broker = await AskpassBroker.open(folder, target.batch ? undefined : people, place, policy, deadline);
    writeFileSync(join(folder, names.config), configText(target, settings), { mode: 0o600 });
    const common = [program, "-F", join(folder, names.config), "-S", join(folder, names.control), "-T"];
    const where = [...destinationArguments(destination), "--", destination.host];
    master = new Master(
      [...common, "-N", "-o", "ControlMaster=yes", ...where],
      { ...process.env, ...askpassEnvironment(folder) },
      people,
    );
    await standing(master, join(folder, names.control), AbortSignal.any([signal, late.signal]));
    // Without the socket ssh would make a connection of its own, which nobody has checked and which may ask once more.
    const channel = [...common, "-o", "ControlMaster=no", "-o", "ProxyCommand=false", ...where];
    return new OpensshConnection(master, channel, program, folder, place, broker);
  } catch (error) {
    master?.stop();
    const ended = error instanceof Master ? classify(error.said, settings, broker?.declined ?? false) : error;
    broker?.close();
    rmSync(folder, { recursive: true, force: true });
    throw ended;
  } finally {
    deadline.end();
  }
}

class Master {
  readonly ended: Promise<void>;
  private readonly tail = new Tail();
  private readonly child;

  constructor(command: string[], env: Record<string, string | undefined>, people: Askpass | undefined) {
    // A group of its own: what is typed at a terminal to stop this process is not meant for it.
    const child = spawn("/bin/sh", ["-c", guarded, "sh", ...command], {
      env,
      stdio: ["pipe", "ignore", "pipe"],
      detached: true,
    });
    this.child = child;
    child.stdin.on("error", () => {});
    child.stderr.on("data", (bytes: Buffer) => {
      this.tail.push(bytes);
      const [presence] = /^Confirm user presence.*/m.exec(bytes.toString()) ?? [];
      if (presence) people?.notice(presence);
    });
    const { promise, resolve } = Promise.withResolvers<void>();
    this.ended = promise;
    child.on("error", () => resolve());
    child.on("close", () => resolve());
  }

  get said(): string {
    return this.tail.text;
  }

  stop(): void {
    this.child.stdin.end();
  }
}

/** Until the master's socket is there, which it is after the login. @throws the master itself where it ends before that */
async function standing(master: Master, socket: string, signal: AbortSignal): Promise<void> {
  let ended = false;
  master.ended.then(() => {
    ended = true;
  });
  while (!existsSync(socket)) {
    if (ended) throw master;
    signal.throwIfAborted();
    await Bun.sleep(pause);
  }
}

class OpensshConnection implements SshConnection {
  readonly via = "openssh";
  readonly closed: Promise<CodedFault | undefined>;
  private readonly end: (fault: CodedFault | undefined) => void;
  private over = false;

  constructor(
    private readonly master: Master,
    private readonly channel: string[],
    private readonly program: string,
    private readonly folder: string,
    private readonly place: string,
    broker: AskpassBroker,
  ) {
    const { promise, resolve } = Promise.withResolvers<CodedFault | undefined>();
    this.closed = promise;
    this.end = (fault) => {
      if (this.over) return;
      this.over = true;
      resolve(fault);
      broker.close();
      master.stop();
      rmSync(folder, { recursive: true, force: true });
    };
    master.ended.then(() => {
      const said = master.said.trim().split("\n").at(-1);
      this.end(this.dropped(said || "it hung up"));
    });
  }

  async exec(command: string): Promise<SshChannel> {
    if (this.over) throw (await this.closed) ?? this.dropped("it was closed here");
    return new OpensshChannel([...this.channel, command], this.place, () => this.state());
  }

  /**
   * ssh has no question of its own to the other host that could be asked at will. A subsystem that does not exist is one: the answer
   * is no, nothing is run, and no shell takes part.
   */
  async probe(limit: number): Promise<void> {
    if (this.over) throw (await this.closed) ?? this.dropped("it was closed here");
    const [program, ...rest] = this.channel;
    const child = Bun.spawn([program!, "-s", ...rest, "ollie-probe"], {
      env: { ...process.env },
      stdio: ["ignore", "ignore", "ignore"],
    });
    const late = Promise.withResolvers<"late">();
    const timer = setTimeout(() => late.resolve("late"), limit);
    try {
      const answer = await Promise.race([child.exited, this.closed, late.promise]);
      if (answer === "late") this.end(this.dropped(`no answer within ${limit / 1000} s`));
      const fault = await this.state();
      if (fault) throw fault;
    } finally {
      clearTimeout(timer);
      child.kill("SIGKILL");
    }
  }

  close(): void {
    this.end(undefined);
  }

  /** What has ended the connection; undefined while it stands. */
  private async state(): Promise<CodedFault | undefined> {
    if (!this.over && (await masterOf(this.program, this.folder)) === undefined) {
      // Its processes see the end before we do.
      await Promise.race([this.master.ended, Bun.sleep(2000)]);
      this.end(this.dropped("its ssh process is gone"));
    }
    return this.over ? ((await this.closed) ?? this.dropped("it was closed here")) : undefined;
  }

  private dropped(why: string): CodedFault {
    return sshFault("ssh.dropped", `the connection to ${this.place} is gone: ${why}`, { retry: true });
  }
}
