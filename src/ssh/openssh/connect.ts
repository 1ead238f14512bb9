/** SSH by the system's own program: one master for the connection, one more process for each channel (`ControlMaster`, ssh_config(5)). */
import { existsSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { CodedFault } from "../../fault.ts";
import { destinationArguments } from "../config/program.ts";
import type { Settings } from "../config/settings.ts";
import { Deadline } from "../deadline.ts";
import { sshFault } from "../fault.ts";
import { policyOf } from "../known/check.ts";
import type { Askpass, SshChannel, SshConnection, SshTarget } from "../transport.ts";
import { AskpassBroker, askpassEnvironment } from "./askpass.ts";
import { OpensshChannel } from "./channel.ts";
import { classify } from "./classify.ts";
import { configText } from "./config.ts";
import { makeFolder, masterOf, names } from "./folder.ts";
import { BorrowedMaster, type Master, OwnMaster } from "./master.ts";

export interface Attempt {
  target: SshTarget;
  settings: Settings;
  people: Askpass | undefined;
  program: string;
  /** A master of the user's that is logged in already may be used. */
  borrow: boolean;
  signal: AbortSignal;
}

/** @throws Fault of the family `ssh` */
export async function connectOpenssh({
  target,
  settings,
  people,
  program,
  borrow,
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
    const users = borrow && (await lives(program, settings.controlPath)) ? settings.controlPath : undefined;
    const control = users ?? join(folder, names.control);
    const common = [program, "-F", join(folder, names.config), "-S", control, "-T"];
    const where = [...destinationArguments(destination), "--", destination.host];
    if (users === undefined) {
      const environment = { ...process.env, ...askpassEnvironment(folder) };
      const own = new OwnMaster([...common, "-N", "-o", "ControlMaster=yes", ...where], environment, people);
      master = own;
      await own.standing(control, AbortSignal.any([signal, late.signal]));
    } else master = new BorrowedMaster(users);
    // Without the socket ssh would make a connection of its own, which nobody has checked and which may ask once more.
    const channel = [...common, "-o", "ControlMaster=no", "-o", "ProxyCommand=false", ...where];
    return new OpensshConnection(master, channel, program, control, folder, place, broker);
  } catch (error) {
    master?.stop();
    const ended =
      error instanceof OwnMaster ? classify(error.said, settings, broker?.declined ?? false) : error;
    broker?.close();
    rmSync(folder, { recursive: true, force: true });
    throw ended;
  } finally {
    deadline.end();
  }
}

async function lives(program: string, control: string | undefined): Promise<boolean> {
  return control !== undefined && existsSync(control) && (await masterOf(program, control)) !== undefined;
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
    private readonly control: string,
    folder: string,
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
    if (!this.over && (await masterOf(this.program, this.control)) === undefined) {
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
