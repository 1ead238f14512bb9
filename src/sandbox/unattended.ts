/** The policy for what runs between the calls. */
import type { Repository } from "./git.ts";
import { within } from "./paths.ts";
import type { Policy } from "./policy.ts";

/**
 * Without the right to write anything of the project. What a call does to hooks and config of git, or puts in their place, is found by
 * comparing after it (git-guard.ts); for a program that works on when no call is under way there is no such moment.
 * @param cwd links resolved
 */
export function withoutProject(policy: Policy, cwd: string, repository?: Repository): Policy {
  const { ro, rox, rw, rwx } = policy.filesystem;
  const git = repository ? [repository.gitDir, repository.commonDir] : [];
  const isOfProject = (path: string) =>
    within(cwd, path) || git.some((folder) => within(folder, path) || within(path, folder));
  const others = (paths: string[]) => paths.filter((path) => !isOfProject(path));
  return {
    ...policy,
    filesystem: {
      ...policy.filesystem,
      ro: [...ro, ...rw.filter(isOfProject)],
      rox: [...rox, ...rwx.filter(isOfProject)],
      rw: others(rw),
      rwx: others(rwx),
    },
  };
}
