/** Real sshds on the loopback device, each with its own folder, keys and port, and what a client needs to get in. */
import { type ChildProcess, spawn } from "node:child_process";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Askpass, SshTarget } from "../../src/ssh/transport.ts";
import { lacks } from "../needs.ts";
import { until } from "../until.ts";

const sshd = ["/usr/sbin/sshd", "/usr/lib/openssh/sshd"].find((path) => Bun.which(path));

export function lacksSshd(): boolean {
  return lacks(
    "sshd, ssh and ssh-keygen, and to run as root",
    sshd !== undefined && Bun.which("ssh") !== null && process.geteuid!() === 0,
  );
}

/** A port that was free a moment ago. */
export async function freePort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as { port: number };
  await new Promise((resolve) => server.close(resolve));
  return port;
}

export function keygen(file: string, ...more: string[]): string {
  const args = ["-q", "-f", file, ...(more.includes("-N") ? [] : ["-N", ""])];
  const made = Bun.spawnSync(
    ["ssh-keygen", ...args, ...(more.includes("-t") ? [] : ["-t", "ed25519"]), ...more],
    {
      env: { ...process.env },
    },
  );
  if (!made.success) throw new Error(made.stderr.toString());
  return file;
}

/** A folder with a key of a user, and the sshds that let it in. */
export class Site {
  readonly folder = mkdtempSync(join(tmpdir(), "ollie-sshd-"));
  readonly user = "root";
  readonly key = keygen(join(this.folder, "id"));
  readonly knownHosts = join(this.folder, "known_hosts");
  readonly authorized = join(this.folder, "authorized_keys");
  private readonly children: ChildProcess[] = [];
  private count = 0;

  constructor() {
    this.authorize(`${this.key}.pub`);
    writeFileSync(this.knownHosts, "");
  }

  authorize(...publicKeys: string[]): void {
    writeFileSync(this.authorized, publicKeys.map((file) => readFileSync(file, "utf8")).join(""), {
      mode: 0o600,
    });
  }

  /** Starts one and waits until it answers. `known`: its keys get into known_hosts. */
  async host(words: string[] = [], { known = true, types = ["ed25519"] } = {}): Promise<Host> {
    const folder = join(this.folder, `host${this.count++}`);
    mkdirSync(folder);
    mkdirSync("/run/sshd", { recursive: true });
    const port = await freePort();
    const keys = types.map((type) => keygen(join(folder, `key_${type}`), "-t", type));
    const config = [
      "ListenAddress 127.0.0.1",
      `Port ${port}`,
      ...keys.map((key) => `HostKey ${key}`),
      `PidFile ${join(folder, "pid")}`,
      `AuthorizedKeysFile ${this.authorized}`,
      "StrictModes no",
      "UsePAM no",
      "PermitRootLogin yes",
      "UseDNS no",
      "PrintMotd no",
      "LogLevel VERBOSE",
      ...(words.some((word) => /^MaxSessions/.test(word)) ? [] : ["MaxSessions 100"]),
      ...(words.some((word) => /^PasswordAuth/.test(word)) ? [] : ["PasswordAuthentication no"]),
      ...words,
    ];
    writeFileSync(join(folder, "config"), `${config.join("\n")}\n`);
    const host = new Host(folder, port, keys);
    this.children.push(host.start());
    await until("sshd listens", () => /Server listening/.test(host.log));
    if (known) for (const key of keys) this.know(`[127.0.0.1]:${port}`, `${key}.pub`);
    return host;
  }

  know(name: string, publicKey: string): void {
    const [type, key] = readFileSync(publicKey, "utf8").split(" ");
    writeFileSync(this.knownHosts, `${readFileSync(this.knownHosts, "utf8")}${name} ${type} ${key}\n`);
  }

  /** A configuration file with these lines; an alias `h` leads to the host. */
  config(host: { port: number }, ...lines: string[]): string {
    const path = join(this.folder, `config${this.count++}`);
    const next = lines.findIndex((line) => line.startsWith("Host "));
    const mine = next < 0 ? lines : lines.slice(0, next);
    const own = mine.some((line) => /^\s*IdentityFile/.test(line)) ? [] : [`IdentityFile ${this.key}`];
    const agent = mine.some((line) => /^\s*IdentityAgent/.test(line)) ? [] : ["IdentityAgent none"];
    const head = ["Host h", "HostName 127.0.0.1", `Port ${host.port}`, `User ${this.user}`, ...own, ...agent];
    const all = ["Host *", "HashKnownHosts no"];
    writeFileSync(path, `${[...head, ...lines, ...all].join("\n")}\n`);
    return path;
  }

  target(configFile: string, more: Partial<SshTarget> = {}): SshTarget {
    return {
      name: "h",
      configFile,
      knownHosts: this.knownHosts,
      connectTimeout: 15_000,
      via: "auto",
      batch: false,
      newHostKey: "refuse",
      ...more,
    };
  }

  [Symbol.dispose](): void {
    for (const child of this.children) child.kill("SIGKILL");
    rmSync(this.folder, { recursive: true, force: true });
  }
}

export class Host {
  log = "";
  private child: ChildProcess | undefined;

  constructor(
    readonly folder: string,
    readonly port: number,
    readonly keys: string[],
  ) {}

  start(): ChildProcess {
    const child = spawn(sshd!, ["-D", "-e", "-f", join(this.folder, "config")], {
      env: { PATH: "/usr/bin:/bin" },
      stdio: ["ignore", "ignore", "pipe"],
    });
    child.stderr.on("data", (text) => {
      this.log += text;
    });
    this.child = child;
    return child;
  }

  /** Processes of sshd that serve a connection, theirs first. */
  sessions(): number[] {
    const children = readFileSync(`/proc/${this.child!.pid}/task/${this.child!.pid}/children`, "utf8");
    return children.trim().split(" ").filter(Boolean).map(Number);
  }

  fingerprint(at = 0): string {
    const shown = Bun.spawnSync(["ssh-keygen", "-lf", `${this.keys[at]}.pub`], { env: { ...process.env } });
    return shown.stdout.toString().split(" ")[1]!;
  }
}

/** People who answer from a list, and what they were asked and told. */
export class People implements Askpass {
  readonly asked: string[] = [];
  readonly told: string[] = [];

  constructor(
    private readonly answers: (string | undefined)[] = [],
    private readonly agrees = false,
  ) {}

  async secret(prompt: string): Promise<Uint8Array | undefined> {
    this.asked.push(prompt);
    const answer = this.answers.shift();
    return answer === undefined ? undefined : Buffer.from(answer);
  }

  async confirm(question: string): Promise<boolean> {
    this.asked.push(question);
    return this.agrees;
  }

  notice(text: string): void {
    this.told.push(text);
  }
}

/** The code and the words of what a promise is rejected with. */
export async function refusal(
  work: Promise<unknown>,
): Promise<{ code: string; message: string; retry: boolean }> {
  try {
    const got = (await work) as { close?(): void } | undefined;
    got?.close?.();
  } catch (error) {
    const {
      code = "none",
      message,
      more,
    } = error as { code?: string; message: string; more?: { retry?: boolean } };
    return { code, message, retry: more?.retry ?? false };
  }
  return { code: "nothing went wrong", message: "", retry: false };
}

export const never = new AbortController().signal;
