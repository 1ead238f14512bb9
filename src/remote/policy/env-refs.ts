/** Variables whose values only the host knows: a client declares names, and where the host shall take the values from. */
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { isOwnKey, looksSecret } from "../../config/secrets.ts";
import { coded } from "../protocol/errors.ts";
import type { EffectivePolicy } from "./effective.ts";
import type { EnvRefs, PolicyGround } from "./host-policy.ts";

/** Set by the runner, never by a request or a reference. */
export const runnerOwned: ReadonlySet<string> = new Set(["PATH", "HOME", "CARGO_HOME"]);

const secretWords = /SECRET|PASSWORD|PASSWD|PASSPHRASE|CREDENTIAL|TOKEN|PRIVATE|API_?KEY|(?:^|_)KEY(?:_|$)/i;

/** Why a name cannot be declared, or undefined. */
export function refProblem(name: string, kind: "host" | "session_sqlite"): string | undefined {
  if (runnerOwned.has(name)) return "is set by the runner and cannot be a reference";
  if (secretWords.test(name) || looksSecret(name) || isOwnKey(name))
    return "looks like the name of a secret, which no reference may hand to programs";
  if (kind === "session_sqlite" && !/^(?:\w+_)?DATABASE_URL$/.test(name))
    return "must be DATABASE_URL or end in _DATABASE_URL to be a session_sqlite";
  return undefined;
}

/**
 * The values.
 * @throws CodedFault `policy.env_ref` where one cannot be declared, is not allowed, or has no value here
 */
export function resolveRefs(
  refs: EnvRefs,
  policy: EffectivePolicy,
  ground: PolicyGround,
): Record<string, string> {
  const entries = Object.entries(refs).map(([name, { kind }]): [string, string] => {
    const refuse = (why: string): never => {
      throw coded("policy.env_ref", `environment_refs.${name}: ${why}`);
    };
    const problem = refProblem(name, kind);
    if (problem) refuse(problem);
    const { allowed_env_refs: allowed } = policy;
    if (!allowed.includes("*") && !allowed.includes(name))
      refuse(`the policy of the host allows ${allowed.join(", ") || "none"} (allowed_env_refs)`);
    if (kind === "host")
      return [name, ground.environment[name] ?? refuse("the host's user has no such variable")];
    if (!policy.allow_session_sqlite)
      refuse("the policy of the host allows no SQLite files (allow_session_sqlite)");
    const file = pathToFileURL(join(databases(ground.folder), `${name.toLowerCase()}.sqlite`));
    return [name, `sqlite://${file.pathname}?mode=rwc`];
  });
  return Object.fromEntries(entries);
}

/** Folder of a session's SQLite files. */
export function databases(sessionFolder: string): string {
  return join(sessionFolder, "data");
}
