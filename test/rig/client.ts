/** The end that connects: a network with all hosts of the rig, and a user with a key. */
import { appendFileSync, mkdirSync, readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { until } from "../until.ts";
import { compile, environment, Hold, succeed, sweep, workFolder, write } from "./hold.ts";
import { Host, type HostOptions } from "./host.ts";
import { processes, signal } from "./processes.ts";

export interface Outcome {
  status: number;
  stdout: string;
  stderr: string;
}

export interface RunOptions {
  stdin?: string | Uint8Array;
  cwd?: string;
  /** Laid over the environment. */
  env?: Record<string, string>;
  /** Milliseconds, 30 000 by default. */
  limit?: number;
}

export class Client {
  readonly home: string;
  /** For programs that run there. */
  readonly env: Record<string, string>;
  readonly hosts: Host[] = [];
  #started = 0;

  private constructor(
    /** Goes with the client. */
    readonly folder: string,
    private readonly hold: Hold,
    private readonly programs: { hold: string; link: string },
  ) {
    this.home = join(folder, "home");
    this.env = {
      ...environment,
      HOME: this.home,
      USER: "root",
      XDG_RUNTIME_DIR: join(folder, "run"),
      TMPDIR: join(folder, "tmp"),
    };
  }

  static async start(): Promise<Client> {
    sweep();
    const folder = workFolder();
    // Others' homes are below it.
    succeed(["chmod", "755", folder]);
    const home = join(folder, "home");
    for (const name of ["home/.ssh", "etc", "over", "run", "tmp"])
      mkdirSync(join(folder, name), { recursive: true, mode: 0o700 });
    succeed([
      "ssh-keygen",
      "-q",
      "-t",
      "ed25519",
      "-N",
      "",
      "-C",
      "rig",
      "-f",
      join(home, ".ssh/id_ed25519"),
    ]);
    write(join(home, ".ssh/config"), "StrictHostKeyChecking yes\nConnectTimeout 20\n", 0o600);
    write(join(home, ".ssh/known_hosts"), "", 0o600);
    // ssh takes the home from here, whatever HOME is.
    const passwd = readFileSync("/etc/passwd", "utf8").replace(
      /^(root:.*:)[^:\n]*(:[^:\n]*)$/m,
      `$1${home}$2`,
    );
    write(join(folder, "etc/passwd"), passwd);
    const programs = { hold: compile("hold", folder), link: compile("link", folder) };
    const script = [
      "ip link set lo up",
      // Hosts reach each other.
      "echo 1 > /proc/sys/net/ipv4/ip_forward",
      `mount -t tmpfs -o mode=755 none ${folder}/over`,
      `mkdir ${folder}/over/work ${folder}/over/etc`,
      `cp -a ${folder}/etc/. ${folder}/over/etc/`,
      `mount -t overlay -o lowerdir=/etc,upperdir=${folder}/over/etc,workdir=${folder}/over/work none /etc`,
      `umount -l ${folder}/over`,
    ];
    const hold = await Hold.make(programs.hold, ["--net", "--mount"], folder, script);
    return new Client(folder, hold, programs);
  }

  /** Starts a host, which is known here by its name, unless options say otherwise. */
  async startHost(options: HostOptions = {}): Promise<Host> {
    const number = ++this.#started;
    const folder = join(this.folder, `host${number}`);
    mkdirSync(folder, { mode: 0o755 });
    const key = readFileSync(join(this.home, ".ssh/id_ed25519.pub"), "utf8");
    const { pid } = this.hold;
    const host = await Host.start(options, { pid, number, folder, programs: this.programs, key });
    this.hosts.push(host);
    const ssh = join(this.home, ".ssh");
    appendFileSync(join(ssh, "config"), `Host ${host.name}\n  HostName ${host.address}\n`);
    if (options.known !== false) appendFileSync(join(ssh, "known_hosts"), host.knownHosts);
    return host;
  }

  /** Words before those of a command that is to run there. The process they start becomes the command. */
  get inside(): string[] {
    return this.hold.enter("--net", "--mount");
  }

  /** The words that run a command there in a folder. */
  argv(argv: string[], cwd: string): string[] {
    return [...this.inside, "sh", "-c", 'cd "$0" && exec "$@"', cwd, ...argv];
  }

  /** Starts a program there. Its id is that of what is returned. */
  spawn(argv: string[], { cwd = this.folder, env, stdin }: RunOptions = {}) {
    return Bun.spawn(this.argv(argv, cwd), {
      env: { ...this.env, ...env },
      stdin: stdin === undefined ? "ignore" : Buffer.from(stdin),
      stdout: "pipe",
      stderr: "pipe",
    });
  }

  /** Runs a program there to its end. @throws Error if it does not end */
  async run(argv: string[], options: RunOptions = {}): Promise<Outcome> {
    const child = this.spawn(argv, options);
    const said = { stdout: "", stderr: "" };
    const collect = async (from: "stdout" | "stderr") => {
      const text = new TextDecoder();
      for await (const chunk of child[from]) said[from] += text.decode(chunk, { stream: true });
    };
    const ended = Promise.all([collect("stdout"), collect("stderr"), child.exited]);
    const limit = new Promise<"limit">((resolve) =>
      setTimeout(() => resolve("limit"), options.limit ?? 30_000).unref(),
    );
    if ((await Promise.race([ended, limit])) === "limit") {
      child.kill("SIGKILL");
      throw new Error(`${argv.join(" ")} did not end; it said: ${said.stdout}${said.stderr}`);
    }
    return { status: child.exitCode ?? 255, ...said };
  }

  /** Runs a command by plain OpenSSH. */
  ssh(host: Host, user: string, command: string, options?: RunOptions): Promise<Outcome> {
    return this.run(["ssh", "-T", "-o", "BatchMode=yes", `${user}@${host.name}`, command], options);
  }

  /** Processes that run there. */
  processes() {
    return processes().filter((each) => each.net === this.hold.net && each.pid !== this.hold.pid);
  }

  /** Ends everything there is of the client and of its hosts. */
  async close(): Promise<void> {
    for (const { pid } of this.processes()) signal(pid, "SIGKILL");
    await Promise.all(this.hosts.map((host) => host.close()));
    await until("nothing runs at the client", () => this.processes().length === 0);
    await this.hold.end();
    rmSync(this.folder, { recursive: true, force: true });
  }
}
