/** What a result says of its sandbox: remarks, what was put back, why something failed. */

import type { CallPolicy, PolicyRequest } from "./configs.ts";
import { explain } from "./explain.ts";
import type { GitGuard } from "./git-guard.ts";
import type { SandboxGround } from "./ground.ts";
import { realpathOfPart } from "./paths.ts";

export interface Enforcement {
  /** Mounts keep `policy.frozen` from being written. */
  frozen: boolean;
  /** Folders of which programs see others than the host's; none without a mount namespace. */
  replaced(): readonly string[];
}

/**
 * Before a call's program is started.
 * @returns what is to be called once after the call, also where its program could not be started; it gives sentences for the result
 */
export function attend(
  guard: GitGuard,
  ground: SandboxGround,
  { cwd, tmp }: PolicyRequest,
  { policy, places, remarks, rulesFile, repository }: CallPolicy,
  { frozen, replaced }: Enforcement,
): (output: string) => string[] {
  const real = realpathOfPart(cwd);
  const settle = guard.watch({ cwd: real, repository, held: frozen ? policy.frozen : [] });
  return (output) => [
    ...remarks,
    ...settle(realpathOfPart(tmp)),
    ...explain(output, { policy, cwd: real, home: ground.paths.home, rulesFile, places, replaced }),
  ];
}
