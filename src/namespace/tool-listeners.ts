/**
 * Where the tools of each agent find the tree as it is for them: a socket of its own for every agent. Whoever attaches there is a tool of
 * that agent, whatever it says of itself; the address alone makes it one.
 */
import { mkdtempSync, readdirSync, rmdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { toFault } from "../fault.ts";
import { newId } from "../ids.ts";
import { newToken } from "../ninep/admission.ts";
import { annex, fits, privateFolder } from "../ninep/folder.ts";
import { bindUnix, listenLoopback } from "../ninep/listen.ts";
import type { Server } from "../ninep/server.ts";
import type { LiveAgent } from "../session/live.ts";
import type { ToolAddresses } from "../session/services.ts";

interface Listening {
  addr: string;
  stop(): void;
}

export class ToolListeners implements ToolAddresses {
  readonly #sockets = new Map<LiveAgent, Listening>();
  readonly #ports = new Map<LiveAgent, Listening & { token: string }>();
  /** Names in the folder. No name comes twice, also not after a restart: what an old process knows leads nowhere. */
  readonly #names = new Set<string>();
  #folder?: string;

  /**
   * @param socket the path of the owner's socket, beside which the folder `PATH.tools` is made
   * @param server asked for when the first tool needs an address
   */
  constructor(
    private readonly socket: string,
    private readonly server: () => Server,
  ) {}

  unix(agent: LiveAgent): string {
    return this.#of(this.#sockets, agent, () => {
      const name = newId();
      const path = join(this.#makeFolder(), name);
      const { stop } = bindUnix(path, this.server(), { checkUid: true, as: agent });
      this.#names.add(name);
      return {
        addr: `unix!${path}`,
        stop: () => {
          stop();
          this.#names.delete(name);
        },
      };
    }).addr;
  }

  tcp(agent: LiveAgent): { addr: string; token: string } {
    return this.#of(this.#ports, agent, () => {
      const token = newToken();
      const { port, stop } = listenLoopback(this.server(), token, agent);
      return { addr: `tcp!127.0.0.1!${port}`, token, stop };
    });
  }

  /** Removes what a server that was killed has left; to be called when the owner's socket is ours. */
  sweep(): void {
    const folder = annex(this.socket);
    try {
      for (const name of readdirSync(folder))
        if (!this.#names.has(name)) rmSync(join(folder, name), { force: true });
    } catch {
      // There is none, or it cannot be looked into: then it cannot be used either, and whoever needs it is told.
    }
  }

  close(): void {
    for (const { stop } of [...this.#sockets.values(), ...this.#ports.values()]) stop();
    this.#sockets.clear();
    this.#ports.clear();
    try {
      if (this.#folder) rmdirSync(this.#folder);
    } catch {
      // Something else lies in it.
    }
  }

  #of<L extends Listening>(known: Map<LiveAgent, L>, agent: LiveAgent, listen: () => L): L {
    const there = known.get(agent);
    if (there) return there;
    let made: L;
    try {
      made = listen();
    } catch (error) {
      throw toFault(error, "no address could be made under which the tool finds its session");
    }
    known.set(agent, made);
    const unwatch = agent.watch(() => {
      if (!agent.removed) return;
      unwatch();
      known.delete(agent);
      made.stop();
    });
    return made;
  }

  /** For the owner alone, like that of the owner's socket. A path that is too long for sockets has to do without its neighbourhood. */
  #makeFolder(): string {
    if (this.#folder) return this.#folder;
    const beside = annex(this.socket);
    if (fits(join(beside, newId()))) {
      privateFolder(this.socket);
      privateFolder(join(beside, newId()));
      this.#folder = beside;
    } else this.#folder = mkdtempSync(join(tmpdir(), "ollie-tools-"));
    return this.#folder;
  }
}
