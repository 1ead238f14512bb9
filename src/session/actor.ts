/** An agent's actor as others see it: the line of `state`, who waits for that to change, and another actor should it break. */
import type { SnapshotFrom } from "xstate";
import type { AgentEvent, AgentRef, agentMachine } from "../../actors/agent.ts";
import { snapshotJson, stateLine } from "../../actors/view.ts";

export interface ActorOwner {
  /** Starts an actor, also in the place of one that broke. */
  spawn(): AgentRef;
  /** The line of `state` is another one. */
  stateChanged(): void;
  /** Ends what the broken actor had begun. Resolves with whether the agent is still there. */
  actorBroke(error: unknown): Promise<boolean>;
}

export class AgentActor {
  #ref?: AgentRef;
  #line = "idle";
  #changes = 0;
  #listeners?: Set<() => void>;

  constructor(readonly owner: ActorOwner) {}

  /** Called once. Goes on with what was submitted before a restart. */
  start(): void {
    this.#attach(this.owner.spawn());
    this.send({ type: "RESUME" });
  }

  send(event: AgentEvent): void {
    this.#ref?.send(event);
  }

  get line(): string {
    return this.#line;
  }

  /** Counts changes of the line. */
  get changes(): number {
    return this.#changes;
  }

  get busy(): boolean {
    return this.#line !== "idle";
  }

  /** Calls back after every change and at the end of the agent. Returns how to stop that. */
  watch(listener: () => void): () => void {
    this.#listeners ??= new Set();
    this.#listeners.add(listener);
    return () => this.#listeners?.delete(listener);
  }

  /** @param remote as for `snapshotJson` */
  snapshot(remote?: unknown): string {
    return this.#ref ? snapshotJson(this.#ref.getSnapshot(), remote) : "";
  }

  /** Resolves when no turn runs. */
  async idle(): Promise<void> {
    while (this.busy)
      await new Promise<void>((resolve) => {
        const unwatch = this.watch(() => {
          unwatch();
          resolve();
        });
      });
  }

  /** The agent has been removed, and its actor with it. */
  end(): void {
    this.#tell();
  }

  #attach(ref: AgentRef): void {
    this.#ref = ref;
    ref.subscribe({
      next: (snapshot) => this.#show(snapshot),
      error: (error) => void this.#replace(ref, error),
    });
    this.#show(ref.getSnapshot());
  }

  #show(snapshot: SnapshotFrom<typeof agentMachine>): void {
    const line = stateLine(snapshot);
    if (line === this.#line) return;
    this.#line = line;
    this.#changes++;
    this.owner.stateChanged();
    this.#tell();
  }

  #tell(): void {
    // A listener may leave while it is told.
    for (const listener of [...(this.#listeners ?? [])]) listener();
  }

  /** A machine that throws, which only a mistake in ollie makes it do, is over. With another one the agent loses no more than the turn. */
  async #replace(broken: AgentRef, error: unknown): Promise<void> {
    const { children, value } = broken.getSnapshot();
    for (const call of Object.values(children)) call?.send({ type: "STOP" });
    if (!(await this.owner.actorBroke(error))) return;
    this.#attach(this.owner.spawn());
    // One that breaks at the very question whether something waits must not be asked again at once.
    if (value !== "idle") this.send({ type: "RESUME" });
  }
}
