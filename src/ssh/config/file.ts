/** The configuration where no ssh program is installed: ssh_config(5) read by ourselves. */
import { readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import SSHConfig, { type Directive, type Line, type Section } from "ssh-config";
import { sshFault } from "../fault.ts";
import type { Destination } from "../target.ts";
import { account } from "./account.ts";
import { matchesList } from "./pattern.ts";
import type { Options } from "./settings.ts";
import { expandPath, expandTokens, words } from "./tokens.ts";

const system = "/etc/ssh/ssh_config";
/** As OpenSSH: files that include each other end somewhere. */
const deepest = 16;
/** Of these every line counts; of all others the first. */
const many = new Set(["identityfile", "certificatefile", "sendenv"]);

/** Reads the configuration as ssh would. @throws Fault `ssh.config` */
export function readConfig(destination: Destination, configFile: string | undefined): Options {
  const reading = new Reading(destination);
  if (configFile !== undefined) reading.file(configFile, dirname(configFile), 0, true);
  else {
    reading.file(join(account().home, ".ssh/config"), join(account().home, ".ssh"), 0);
    reading.file(system, dirname(system), 0);
  }
  return reading.options;
}

class Reading {
  readonly options: Options = new Map();

  constructor(private readonly destination: Destination) {
    if (destination.user !== undefined) this.options.set("user", [destination.user]);
    if (destination.port !== undefined) this.options.set("port", [String(destination.port)]);
  }

  /** @param folder what names of included files are relative to */
  file(path: string, folder: string, depth: number, required = false): void {
    if (depth > deepest) throw sshFault("ssh.config", `${path}: Include goes deeper than ${deepest} files`);
    let lines: Line[];
    try {
      lines = SSHConfig.parse(readFileSync(path, "utf8"));
    } catch (error) {
      if (!required && (error as { code?: string }).code === "ENOENT") return;
      throw sshFault("ssh.config", `${path} cannot be read: ${(error as Error).message}`);
    }
    this.lines(lines, folder, depth);
  }

  private lines(lines: Line[], folder: string, depth: number): void {
    for (const line of lines) {
      if (line.type !== SSHConfig.DIRECTIVE) continue;
      const key = line.param.toLowerCase();
      const value = textOf(line.value);
      if (key === "host" || key === "match") {
        const applies =
          key === "host" ? matchesList(words(value), this.destination.host) : this.matches(value);
        if (applies) this.lines((line as Section).config, folder, depth);
      } else if (key === "include") {
        for (const pattern of words(value)) this.include(expandPath(pattern, {}), folder, depth);
      } else if (many.has(key)) this.options.set(key, [...(this.options.get(key) ?? []), value]);
      else if (!this.options.has(key)) this.options.set(key, [value]);
    }
  }

  private include(pattern: string, folder: string, depth: number): void {
    const path = join(pattern.startsWith("/") ? "/" : folder, pattern);
    const found = [...new Bun.Glob(path.slice(1)).scanSync({ cwd: "/", absolute: true, dot: true })].sort();
    for (const file of found) this.file(file, folder, depth + 1);
  }

  /** The criteria of `Match`. */
  private matches(value: string): boolean {
    const left = words(value);
    const host = expandTokens(this.options.get("hostname")?.[0] ?? "%h", { h: this.destination.host });
    const user = this.options.get("user")?.[0] ?? account().name;
    while (left.length > 0) {
      const word = left.shift()!.toLowerCase();
      const negated = word.startsWith("!");
      const criterion = negated ? word.slice(1) : word;
      if (criterion === "all") continue;
      // Both speak of a second reading, which is not done here.
      if (criterion === "canonical" || criterion === "final") {
        if (!negated) return false;
        continue;
      }
      const argument = left.shift();
      if (argument === undefined) return false;
      const list = argument.split(",");
      const matched =
        criterion === "host"
          ? matchesList(list, host)
          : criterion === "originalhost"
            ? matchesList(list, this.destination.host)
            : criterion === "user"
              ? matchesList(list, user)
              : criterion === "localuser"
                ? matchesList(list, account().name)
                : criterion === "exec" && this.succeeds(argument, host, user);
      if (matched === negated) return false;
    }
    return true;
  }

  private succeeds(command: string, host: string, user: string): boolean {
    const values = {
      h: host,
      n: this.destination.host,
      r: user,
      u: account().name,
      p: this.options.get("port")?.[0] ?? "22",
      d: account().home,
    };
    return Bun.spawnSync(["/bin/sh", "-c", expandTokens(command, values)], {
      env: { ...process.env },
      stdio: ["ignore", "ignore", "ignore"],
      timeout: 5000,
    }).success;
  }
}

/** A value as it stands in the file, but for quotes that do nothing. */
function textOf(value: Directive["value"]): string {
  if (typeof value === "string") return value;
  return value.map(({ val, quoted }) => (quoted ? `"${val}"` : val)).join(" ");
}
