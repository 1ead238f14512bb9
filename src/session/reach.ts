/**
 * What a session's tools run with: this machine, or another host with this machine beside it for the tools that must run where the server is.
 * The way to that host is made when it is first needed.
 */
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { CodedFault, Fault } from "../fault.ts";
import type { Hands } from "../tools/hands.ts";
import type { Tool } from "../tools/tool.ts";
import type { RemoteOwner, SessionRemote } from "./remote.ts";
import type { Services } from "./services.ts";

export const noRemotes = "this server cannot reach other hosts";

export class Reach {
  #remote?: SessionRemote;
  #line: string;
  #changes = 0;
  #unwatch?: () => void;
  readonly #listeners = new Set<() => void>();

  /** @param owner of the session, or undefined while its tools run here */
  constructor(
    private readonly services: Services,
    private readonly owner: () => RemoteOwner | undefined,
    private readonly changed: () => void,
  ) {
    this.#line = this.#now();
  }

  /** The other host, reached or not; undefined: this one. */
  get remote(): SessionRemote | undefined {
    if (this.#remote) return this.#remote;
    const owner = this.owner();
    if (!owner) return undefined;
    const { remotes } = this.services;
    if (!remotes) throw new CodedFault("unavailable", "ssh.config", noRemotes);
    this.#remote = remotes.open(owner);
    this.#unwatch = this.#remote.watch(() => this.#look());
    this.#look();
    return this.#remote;
  }

  /** The same, only where the way to it has been asked for. */
  get opened(): SessionRemote | undefined {
    return this.#remote;
  }

  get elsewhere(): boolean {
    return this.owner() !== undefined;
  }

  get hands(): Hands {
    return this.remote?.hands ?? this.services.hands;
  }

  handsFor(tool: Tool): Hands {
    return tool.remote ? this.hands : this.services.hands;
  }

  /** Sorted by name. */
  tools(): Tool[] {
    const { hands } = this.services;
    const there = this.remote?.hands.registry.list();
    if (!there) return hands.registry.list();
    const here = hands.registry.list().filter((tool) => !tool.remote);
    const names = new Set(here.map(({ name }) => name));
    const others = there.filter(({ name, remote }) => remote && !names.has(name));
    return [...here, ...others].sort((a, b) => (a.name < b.name ? -1 : 1));
  }

  tool(name: string): Tool | undefined {
    const here = this.services.hands.registry.get(name);
    const { remote } = this;
    if (!remote || (here && !here.remote)) return here;
    const there = remote.hands.registry.get(name);
    return there?.remote ? there : undefined;
  }

  /** The line of the file `remote`. */
  get line(): string {
    return this.#line;
  }

  /** Its first word: what the way to the host is doing. */
  get state(): string {
    return this.#line.split(" ", 1)[0]!;
  }

  /** Counts changes of the line. */
  get changes(): number {
    return this.#changes;
  }

  watch(listener: () => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  /** @throws Fault where the tools run here */
  required(verb: string): SessionRemote {
    const { remote } = this;
    if (!remote) throw new Fault("invalid", `${verb}: the tools of this session run on this host (remote=)`);
    return remote;
  }

  /** `remote=` says something else now, or the session ends. Returns what is to be let go or destroyed. */
  leave(): SessionRemote | undefined {
    const left = this.#remote;
    this.#unwatch?.();
    this.#remote = undefined;
    this.#unwatch = undefined;
    this.#look();
    return left;
  }

  /** The session is gone: whoever waits learns it. */
  end(): void {
    this.#tell();
  }

  #look(): void {
    const line = this.#now();
    if (line === this.#line) return;
    this.#line = line;
    this.#changes++;
    this.changed();
    this.#tell();
  }

  #now(): string {
    const owner = this.owner();
    return owner ? (this.#remote?.line ?? `idle ${owner.target}`) : "local";
  }

  #tell(): void {
    // A listener may leave while it is told.
    for (const listener of [...this.#listeners]) listener();
  }
}

/** A folder for tools that run here for a session whose project is elsewhere: there is nothing in it that is not the session's own. */
export function folderHere(tmp: string): string {
  const folder = join(tmp, "here");
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  return folder;
}
