/** Which tools an agent has: what its config loads, what was loaded and unloaded since, and what it may have at all. */
import { Fault } from "../fault.ts";
import type { AgentStore } from "../store/agent-store.ts";
import type { Tool } from "../tools/tool.ts";
import type { Profile } from "./profile.ts";
import type { Reach } from "./reach.ts";

export class Toolbox {
  constructor(
    readonly store: AgentStore,
    readonly reach: Reach,
    readonly profile: Profile,
  ) {}

  /** Sorted by name; only those that exist on the session's host. */
  loaded(): Tool[] {
    const { loaded, unloaded } = this.store.state;
    const names = new Set(this.#autoLoad().filter((name) => !unloaded.has(name)));
    for (const name of loaded) names.add(name);
    return this.reach.tools().filter(({ name }) => names.has(name) && this.#allowed(name));
  }

  /** What it has not loaded and may load. */
  loadable(): Tool[] {
    const loaded = new Set(this.loaded());
    return this.reach.tools().filter((tool) => !loaded.has(tool) && this.#allowed(tool.name));
  }

  /** What the config wants loaded and the session's host does not have. */
  missing(): string[] {
    return this.profile.config().autoLoad.filter((name) => !this.reach.tool(name));
  }

  /** `NAME` loads, `-NAME` unloads; all or nothing. */
  change(words: readonly string[]): void {
    const loaded = new Set(this.loaded().map((tool) => tool.name));
    const load: string[] = [];
    const unload: string[] = [];
    for (const word of words) {
      if (word.startsWith("-")) unload.push(this.#unloadable(word.slice(1), loaded));
      else load.push(this.#loadable(word));
    }
    this.store.append({ t: "tools", load, unload });
  }

  #unloadable(name: string, loaded: Set<string>): string {
    if (!loaded.has(name)) throw new Fault("missing", `tool ${name} is not loaded`);
    return name;
  }

  #loadable(name: string): string {
    if (!this.reach.tool(name))
      throw new Fault(
        "missing",
        `no tool ${name} on ${this.reach.hands.host ?? "this host"}; the file tools of the root lists ${this.reach.hands.host === undefined ? "them" : "those of this host"}`,
      );
    if (!this.#allowed(name))
      throw new Fault("denied", `tool ${name} is not in allowTools of agent ${this.profile.config().name}`);
    return name;
  }

  /** A cold tool is only listed until somebody asks for it. */
  #autoLoad(): string[] {
    return this.profile.config().autoLoad.filter((name) => this.reach.tool(name)?.tier === "hot");
  }

  #allowed(name: string): boolean {
    const { allowTools } = this.profile.config();
    return allowTools.length === 0 || allowTools.includes(name);
  }
}
