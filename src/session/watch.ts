/** The line that `state` shows, how often it has changed, and who wants to know. */
export class StateWatch {
  line = "idle";
  changes = 0;
  #listeners?: Set<() => void>;

  /** Returns whether that is news. */
  set(line: string): boolean {
    if (line === this.line) return false;
    this.line = line;
    this.changes++;
    return true;
  }

  tell(): void {
    // A listener may leave while it is told.
    for (const listener of [...(this.#listeners ?? [])]) listener();
  }

  add(listener: () => void): () => void {
    this.#listeners ??= new Set();
    this.#listeners.add(listener);
    return () => this.#listeners?.delete(listener);
  }
}
