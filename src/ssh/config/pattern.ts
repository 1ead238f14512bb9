/** Patterns of ssh_config(5) and sshd(8): `*`, `?`, and `!` before one that excludes. */

/** One pattern, case not minded. */
export function matchesPattern(pattern: string, name: string): boolean {
  const source = pattern
    .replace(/[.+^${}()|[\]\\]/g, "\\$&")
    .replace(/\*/g, ".*")
    .replace(/\?/g, ".");
  return new RegExp(`^${source}$`, "is").test(name);
}

/** A list: at least one has to match, and none of those with a `!`. */
export function matchesList(patterns: string[], name: string): boolean {
  let matched = false;
  for (const pattern of patterns) {
    const negated = pattern.startsWith("!");
    if (!matchesPattern(negated ? pattern.slice(1) : pattern, name)) continue;
    if (negated) return false;
    matched = true;
  }
  return matched;
}
