/** The other hosts that sessions of a server have their tools on, as `remotes.yaml` and the sandbox configs have them. */
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Config } from "../config/config.ts";
import { isOwnKey } from "../config/secrets.ts";
import type { Approvals } from "../elevate/approvals.ts";
import { CodedFault, toFault } from "../fault.ts";
import { newId } from "../ids.ts";
import { Connections } from "../remote/client/connections.ts";
import type { LinkOptions } from "../remote/client/link.ts";
import { type Locator as KeptLocator, locator as locatorSchema } from "../remote/client/locator.ts";
import { LocalTools } from "../remote/client/tools/local.ts";
import { loadRemotes, type Remotes, remotesFile } from "../remote/policy/remotes.ts";
import { sandboxFile, sandboxNames } from "../sandbox/layers.ts";
import { ProjectApprovals } from "../sandbox/project-approvals.ts";
import type { Askpass } from "../ssh/transport.ts";
import type { RemoteHosts, RemoteOwner, SessionRemote } from "./remote.ts";
import { Way } from "./way.ts";

/** Says to hosts which server this is. */
const clientFile = "remote-client";

export class Hosts implements RemoteHosts {
  readonly #connections: Connections;
  #config!: Config;
  #remotes!: Remotes;
  #tools!: LocalTools;
  #client?: string;

  constructor(
    config: Config,
    private readonly approvals: Approvals,
    /** Tests bring a host without SSH. */
    private readonly made: { connections?: Connections; boot?: LinkOptions["boot"] } = {},
  ) {
    this.#connections = made.connections ?? new Connections();
    this.reload(config);
  }

  /** Ways that are open keep what they were made with. @throws Fault where remotes.yaml is wrong */
  reload(config: Config): void {
    const { environment, paths, settings } = config;
    this.#remotes = loadRemotes(remotesFile(environment, paths.config), settings.ssh);
    this.#tools = new LocalTools(paths.tools);
    this.#config = config;
  }

  check(target: string): void {
    this.#remotes.profileFor(target);
  }

  open(owner: RemoteOwner): SessionRemote {
    const { target } = owner;
    const profile = this.#remotes.profileFor(target);
    const { reconnectGrace } = this.#config.settings;
    return new Way(owner, {
      target,
      profile,
      grace: reconnectGrace === undefined ? profile.timeouts.reconnectGrace : reconnectGrace * 1000,
      client: this.#clientId(),
      connections: this.#connections,
      boot: this.made.boot,
      askpass: askpassOf(this.approvals, owner),
      locator: locatorOf(owner),
      workspace: { kind: "inplace", path: owner.cwd || "~" },
      settings: () => ({
        env: Object.fromEntries(Object.entries(owner.env()).filter(([name]) => !isOwnKey(name))),
        sandboxes: this.#sandboxes(),
        approved: new ProjectApprovals(this.#config.paths.state).there(target),
      }),
      tools: this.#tools,
    });
  }

  #sandboxes(): Record<string, string> {
    const { config } = this.#config.paths;
    const read = (name: string) => {
      try {
        return [[name, readFileSync(sandboxFile(config, name), "utf8")]];
      } catch {
        // Nobody has made that one, or it goes just now.
        return [];
      }
    };
    return Object.fromEntries(sandboxNames(config).flatMap(read));
  }

  #clientId(): string {
    const file = join(this.#config.paths.state, clientFile);
    this.#client ??= readId(file);
    if (this.#client === undefined) {
      this.#client = newId();
      try {
        writeFileSync(file, `${this.#client}\n`, { mode: 0o600, flag: "wx" });
      } catch (error) {
        throw toFault(error, `${file} cannot be written`);
      }
    }
    return this.#client;
  }
}

function readId(file: string): string | undefined {
  try {
    return readFileSync(file, "utf8").trim() || undefined;
  } catch {
    return undefined;
  }
}

/** @throws CodedFault where another session is asked for than this server can go on with */
function locatorOf({ locator, attach, target }: RemoteOwner): KeptLocator | undefined {
  const kept = locator && locatorSchema.safeParse(locator);
  if (kept && !kept.success)
    throw new CodedFault("invalid", "session.absent", `what was kept of the session on ${target} is damaged`);
  if (attach !== undefined && kept?.data.sessionId !== attach)
    throw new CodedFault(
      "missing",
      "session.absent",
      `this server has not made the session ${attach} on ${target} and cannot go on with it; no other is made in its place`,
    );
  return kept?.data;
}

/** Questions of SSH are asked as those for elevation are: by whoever answers them. */
function askpassOf(approvals: Approvals, owner: RemoteOwner): Askpass {
  const about = (target: string, command: string) => ({
    session: owner.name,
    agent: "",
    tool: "ssh",
    command,
    cwd: "",
    host: target,
  });
  return {
    async secret(prompt, { target }) {
      const question = { ...about(target, prompt), kind: "password" as const };
      const answer = await approvals.ask(question, new AbortController().signal);
      return answer.decision === "password" ? answer.password : undefined;
    },
    async confirm(question, { target }) {
      const asked = { ...about(target, question), kind: "approval" as const };
      const answer = await approvals.ask(asked, new AbortController().signal);
      return answer.decision === "allow";
    },
    notice: (text) => owner.say(text),
  };
}
