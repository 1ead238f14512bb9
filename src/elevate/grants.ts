/** What was allowed for the rest of a session's life. Kept in memory alone: a restart asks again. */

export class SessionGrants {
  /** By the session itself and not by its name: another session may get that. */
  readonly #bySession = new WeakMap<object, Set<string>>();

  /** @param what all that makes a call the same one: tool, program, folder, arguments */
  add(session: object, what: unknown): void {
    const granted = this.#bySession.get(session) ?? new Set();
    granted.add(keyOf(what));
    this.#bySession.set(session, granted);
  }

  has(session: object, what: unknown): boolean {
    return this.#bySession.get(session)?.has(keyOf(what)) === true;
  }
}

/** The same for objects that differ in nothing but the order of their keys. */
function keyOf(what: unknown): string {
  return JSON.stringify(what, (_, value: unknown) =>
    value !== null && typeof value === "object" && !Array.isArray(value)
      ? Object.fromEntries(Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1)))
      : value,
  );
}
