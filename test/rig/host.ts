/** Another host: namespaces with an sshd, people, and whatever is wrong with it. */
import { mkdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { until } from "../until.ts";
import { Hold, removeFormat, succeed, write } from "./hold.ts";
import { type End, Link, type LinkOptions, plug } from "./link.ts";
import { type Process, processes, signal } from "./processes.ts";
import { fillRoot, mountRoot, type Root, registerArm64, rootPath } from "./roots.ts";
import { fillHome, type HostUser, mountHome, mountShells, shellPath } from "./users.ts";

export interface HostOptions {
  /** What it is called, there and in the client's ssh configuration. */
  name?: string;
  /** By name; text is the shell. The default is `alice`, with bash. */
  users?: Record<string, string | HostUser>;
  /** Of the cable. Given, if empty, the host can be cut off. */
  link?: LinkOptions;
  /** What sessions see of the machine; unset = all of it. */
  root?: Root;
  /** More lines of sshd_config. */
  sshd?: string[];
  /** More words for `sh`, run as root on the host before sshd starts. */
  mounts?: string[];
  /** False: the client has never seen the host's key. */
  known?: boolean;
}

/** What the client gives to its hosts. */
export interface Surroundings {
  /** A process in the client's network, and the number of the host there. */
  pid: number;
  number: number;
  folder: string;
  programs: { hold: string; link: string };
  /** Line of authorized_keys. */
  key: string;
}

/** Of the first user; far from those of the machine. */
const firstUid = 21_001;
const config = "/etc/ssh/rig_config";
const hostKeyFile = "/etc/ssh/rig_host_key";
const pidFile = "/run/sshd.pid";
const logFile = "/run/sshd.log";

export class Host {
  readonly port = 22;
  /** In a session of the last key change. */
  hostKey = "";
  readonly uids = new Map<string, number>();
  #hold!: Hold;
  #link?: Link;
  #format?: string;

  private constructor(
    readonly name: string,
    readonly address: string,
    readonly ipv6: string,
    private readonly root: Root | undefined,
  ) {}

  static async start(options: HostOptions, around: Surroundings): Promise<Host> {
    const { number, folder } = around;
    const name = options.name ?? `host${number}`;
    const host = new Host(name, `10.9.${number}.2`, `fd09:${number}::2`, options.root);
    const users = Object.entries(options.users ?? { alice: "bash" });
    host.#prepare(users, options, around);
    const format = options.root === "arm64" ? registerArm64() : undefined;
    const script = [
      "ip link set lo up",
      `hostname ${name}`,
      // Changes of /etc are the host's own. Files mounted over single files would vanish as soon as anything on the machine replaced those.
      `mount -t tmpfs -o mode=755 none ${folder}/over`,
      `mkdir ${folder}/over/work`,
      `cp -a ${folder}/etc ${folder}/over/etc`,
      `mount -t overlay -o lowerdir=/etc,upperdir=${folder}/over/etc,workdir=${folder}/over/work none /etc`,
      "mount -t tmpfs -o mode=755 none /run",
      "mkdir -m 755 /run/sshd",
      "mount -t tmpfs -o mode=1777 none /dev/shm",
      `mount --bind ${folder}/home /home`,
      ...mountShells(),
      ...users.flatMap(([user, of]) => mountHome(user, typeof of === "string" ? undefined : of.home)),
      ...(format?.script ?? []),
      ...(options.mounts ?? []),
      `mount --bind ${folder}/tmp /tmp`,
      ...(options.root ? [`mkdir /run/filled && mount --bind ${folder}/root /run/filled`] : []),
      // What the folder is in, too; so this is the last that is taken from there.
      `mount --bind ${folder}/vartmp /var/tmp`,
      ...(options.root ? mountRoot("/run/filled") : []),
    ];
    const namespaces = [
      "--net",
      "--mount",
      "--pid",
      "--uts",
      "--ipc",
      "--fork",
      "--kill-child",
      "--mount-proc",
    ];
    host.#hold = await Hold.make(around.programs.hold, namespaces, folder, script);
    host.#format = format?.name;
    await host.#connect(around, options.link);
    await host.startSshd();
    return host;
  }

  /** Writes what the script puts in its place. */
  #prepare(users: [string, string | HostUser][], options: HostOptions, around: Surroundings): void {
    const { folder } = around;
    for (const name of ["etc", "etc/ssh", "home", "over", "root", "tmp", "vartmp"])
      mkdirSync(join(folder, name), { recursive: true, mode: 0o755 });
    succeed(["chmod", "1777", join(folder, "tmp"), join(folder, "vartmp")]);
    const lines = { passwd: "", group: "", shadow: "" };
    for (const [index, [name, of]] of users.entries()) {
      const user = typeof of === "string" ? { shell: of } : of;
      const uid = firstUid + index;
      this.uids.set(name, uid);
      const shell = options.root ? "/bin/sh" : shellPath(user.shell ?? "bash");
      lines.passwd += `${name}:x:${uid}:${uid}::/home/${name}:${shell}\n`;
      lines.group += `${name}:x:${uid}:\n`;
      lines.shadow += `${name}:*:19000:0:99999:7:::\n`;
      fillHome(join(folder, "home", name), uid, user, around.key);
    }
    for (const [name, text] of Object.entries(lines))
      write(
        join(folder, "etc", name),
        readFileSync(`/etc/${name}`, "utf8") + text,
        name === "shadow" ? 0o600 : 0o644,
      );
    if (options.root)
      fillRoot(options.root, join(folder, "root"), `root:x:0:0::/root:/bin/sh\n${lines.passwd}`);
    write(join(folder, config), sshdConfig(options));
    this.#makeKey(join(folder, hostKeyFile));
  }

  #makeKey(file: string): void {
    succeed(["sh", "-c", 'rm -f "$1" && ssh-keygen -q -t ed25519 -N "" -C "" -f "$1"', "sh", file]);
    this.hostKey = readFileSync(`${file}.pub`, "utf8").trim();
  }

  async #connect(around: Surroundings, link: LinkOptions | undefined): Promise<void> {
    const client: End = { pid: around.pid, name: `h${around.number}` };
    const own: End = { pid: this.#hold.pid, name: "eth0" };
    if (link) this.#link = await Link.make(around.programs.link, client, own, link);
    else plug(client, own);
    const net = `10.9.${around.number}`;
    const net6 = `fd09:${around.number}:`;
    for (const [end, last] of [
      [client, 1],
      [own, 2],
    ] as const)
      succeed([
        ...["nsenter", "--target", String(end.pid), "--net", "--", "sh", "-euc"],
        `ip addr add ${net}.${last}/24 dev ${end.name}
         ip -6 addr add ${net6}:${last}/64 dev ${end.name} nodad
         ip link set ${end.name} up`,
      ]);
    // To other hosts, by way of the client.
    this.exec("ip", "route", "add", "default", "via", `${net}.1`);
  }

  /** Lines of known_hosts. */
  get knownHosts(): string {
    return [this.address, this.ipv6].map((address) => `${address} ${this.hostKey}\n`).join("");
  }

  home(user: string): string {
    if (!this.uids.has(user)) throw new Error(`nobody called ${user} on ${this.name}`);
    return `/home/${user}`;
  }

  /** Where a path of a session on the host is for this process, which is root. */
  at(path: string): string {
    return join(`/proc/${this.#hold.pid}/root`, this.root ? rootPath : "", path);
  }

  /** Words before those of a command that is to run as root on the host, outside the root of its sessions. */
  get inside(): string[] {
    return this.#hold.enter("--net", "--mount", "--pid", "--uts", "--ipc");
  }

  /** Runs a command as root on the host. @throws Error with what it said */
  exec(...argv: string[]): string {
    return succeed([...this.inside, ...argv]);
  }

  /** Processes on the host: all, or those of a user. `pid` is what this machine calls them. */
  processes(user?: string): Process[] {
    const own = processes().filter(({ pids }) => pids === this.#hold.pids);
    if (user === undefined) return own;
    return own.filter(({ uid }) => uid === this.uids.get(user));
  }

  /** Ends all processes of a user. */
  async clear(user: string): Promise<void> {
    await until(`${user} is gone`, () => {
      const left = this.processes(user);
      for (const { pid } of left) signal(pid, "SIGKILL");
      return left.length === 0;
    });
  }

  /** Whether what is sent to and from it vanishes. */
  async blackHole(on: boolean): Promise<void> {
    if (!this.#link) throw new Error(`${this.name} has no link that could be cut: start it with one`);
    await this.#link.blackHole(on);
  }

  async startSshd(): Promise<void> {
    this.exec("rm", "-f", pidFile);
    this.exec("/usr/sbin/sshd", "-f", config, "-E", logFile);
    // It writes that when it listens.
    await until("sshd listens", () => this.#listener());
  }

  #listener(): Process | undefined {
    let inner: number;
    try {
      inner = Number(readFileSync(join(`/proc/${this.#hold.pid}/root`, pidFile), "utf8"));
    } catch {
      return undefined;
    }
    return this.processes().find((each) => each.inner === inner && each.argv[0]?.includes("sshd"));
  }

  /**
   * SIGKILL for sshd at once.
   * @param which the processes of connections, or also the one that takes new ones (startSshd() brings it back)
   */
  killSshd(which: "connections" | "all" = "all"): void {
    const listener = this.#listener()?.pid;
    for (const { pid, argv } of this.processes())
      if (/^(\S*\/)?sshd\b/.test(argv[0] ?? "") && (which === "all" || pid !== listener))
        signal(pid, "SIGKILL");
  }

  /** The host has another key from now on. Connections stay. */
  async newHostKey(): Promise<void> {
    this.#makeKey(join(`/proc/${this.#hold.pid}/root`, hostKeyFile));
    const listener = this.#listener();
    if (listener) {
      signal(listener.pid, "SIGKILL");
      await until("sshd is gone", () => !this.processes().some(({ pid }) => pid === listener.pid));
    }
    await this.startSshd();
  }

  /** What sshd has logged. */
  log(): string {
    return readFileSync(join(`/proc/${this.#hold.pid}/root`, logFile), "utf8");
  }

  async close(): Promise<void> {
    if (this.#format) removeFormat(this.#format);
    await this.#link?.end();
    await this.#hold.end();
  }
}

function sshdConfig({ sshd = [], root }: HostOptions): string {
  return [
    "Port 22",
    `HostKey ${hostKeyFile}`,
    `PidFile ${pidFile}`,
    "UsePAM no",
    "PasswordAuthentication no",
    "KbdInteractiveAuthentication no",
    "UseDNS no",
    "PrintMotd no",
    "LogLevel VERBOSE",
    "Subsystem sftp internal-sftp",
    ...(root ? [`ChrootDirectory ${rootPath}`] : []),
    // A Match block lasts to the end.
    ...sshd,
    "",
  ].join("\n");
}
