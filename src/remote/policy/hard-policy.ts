/** The hard policy file of a host: what no client gets more of. */
import type { Stats } from "node:fs";
import { join } from "node:path";
import { configFolder, type Environment } from "../../config/paths.ts";
import { parseYaml, readTextFile } from "../../config/yaml.ts";
import { coded } from "../protocol/errors.ts";
import { type EffectivePolicy, fromHard, renarrow } from "./effective.ts";
import { type HardPolicy, hardPolicy } from "./keys.ts";

/** The administrator's: holds for every user of the host, and caps what a user's own file says. */
const systemFile = "/etc/ollie/remote-policy.yaml";

export interface HardPolicies {
  /** What holds before a client has said anything. */
  policy: EffectivePolicy;
  /** A program has to be signed by one of each list; no list, by nobody. Ed25519 keys, base64. */
  publisherKeys: string[][];
  /** The files that count. */
  files: string[];
}

/**
 * Reads the policy of this host: that of the administrator, and that of the user (`--policy`, else `remote-policy.yaml` in the config folder),
 * which can only narrow it.
 * @param flag `--policy`: a file that has to be there
 * @param system the administrator's file
 * @throws CodedFault `policy.file`: no file, not to be trusted, or not a policy; nothing runs then, since less than the policy would hold
 */
export function readHardPolicies(environment: Environment, flag?: string, system = systemFile): HardPolicies {
  const users = flag ?? join(configFolder(environment), "remote-policy.yaml");
  const found = [
    { file: system, hard: read(system) },
    { file: users, hard: read(users) },
  ].filter((one): one is { file: string; hard: HardPolicy } => one.hard !== undefined);
  if (flag !== undefined && !found.some(({ file }) => file === flag))
    throw coded("policy.file", `there is no policy file ${flag}`, {
      hint: "write one, or leave --policy away",
    });
  const policies = found.map(({ hard }) => fromHard(hard));
  return {
    policy: policies.reduce(
      (holds, hard) => ({ ...renarrow(hard, holds), program_paths: paths(holds, hard) }),
      fromHard({}),
    ),
    publisherKeys: found.flatMap(({ hard }) => (hard.publisher_keys ? [hard.publisher_keys] : [])),
    files: [...new Set(found.map(({ file }) => file))],
  };
}

/** What the administrator says of where a program is counts. */
function paths(holds: EffectivePolicy, hard: EffectivePolicy): Record<string, string> {
  return { ...hard.program_paths, ...holds.program_paths };
}

function read(file: string): HardPolicy | undefined {
  try {
    const text = readTextFile(file, { check: (stat) => checkOwner(file, stat) });
    return text === undefined ? undefined : parseYaml(text, file, hardPolicy);
  } catch (error) {
    throw coded("policy.file", (error as Error).message, {}, { cause: error });
  }
}

/** Who else could write it could allow himself what he likes. */
function checkOwner(file: string, { uid, mode }: Stats): void {
  const own = process.geteuid!();
  if (uid !== 0 && uid !== own)
    throw coded("policy.file", `${file} belongs to user ${uid}: it must belong to root or to user ${own}`);
  if ((mode & 0o022) !== 0) throw coded("policy.file", `${file} can be written by others: chmod 600 ${file}`);
}
