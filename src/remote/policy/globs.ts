/**
 * Patterns of paths. Bun.Glob has the syntax people know (`*`, `**`, `?`, `[…]`, `{a,b}`), takes names with a leading dot like others, needs no
 * package, and is what the rest of the program uses.
 */

export class Globs {
  readonly #globs: readonly InstanceType<typeof Bun.Glob>[];

  constructor(patterns: readonly string[]) {
    this.#globs = patterns.map((pattern) => new Bun.Glob(pattern));
  }

  matches(path: string): boolean {
    return this.#globs.some((glob) => glob.match(path));
  }
}

/**
 * Patterns of what is denied. Who may not see what is in a folder may not see the folder, `secrets` by `secrets/**`, nor anything below a file
 * or folder that is denied itself.
 */
export class DeniedGlobs {
  readonly #globs: Globs;

  constructor(patterns: readonly string[]) {
    const folders = patterns
      .filter((pattern) => pattern.endsWith("/**"))
      .map((pattern) => pattern.slice(0, -3));
    this.#globs = new Globs([...patterns, ...folders]);
  }

  matches(path: string): boolean {
    const names = path.split("/");
    return names.some((_, index) => this.#globs.matches(names.slice(0, index + 1).join("/")));
  }
}
