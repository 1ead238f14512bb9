/** The policy that holds for a session: the host's hard policy and the client's, of which the second can only narrow the first. */
import { hashOf } from "../protocol/hash.ts";
import type { ClientPolicy, HardPolicy } from "./keys.ts";

/**
 * Every key has a value. `readable` and `writable` are lists of lists: a path must match a pattern of each, since two sets of patterns have no
 * common set that could be written down. Lists are sorted, so that the same policy has the same hash.
 */
export interface EffectivePolicy {
  allowed_programs: string[];
  program_paths: Record<string, string>;
  allowed_env: string[];
  allowed_env_refs: string[];
  inherited_env: string[];
  readable: string[][];
  writable: string[][];
  denied: string[];
  max_timeout_secs: number;
  max_output_bytes: number;
  max_read_bytes: number;
  max_write_bytes: number;
  max_list_entries: number;
  max_args: number;
  max_arg_bytes: number;
  max_spool_bytes: number;
  idle_ttl_secs: number;
  max_ttl_secs: number;
  allow_session_sqlite: boolean;
  allow_code_steps: boolean;
  allow_elevated: boolean;
  follow_inside: boolean;
  require_landlock_abi: number;
}

const day = 24 * 60 * 60;

/** What holds on a host without a policy file: a user's own account, on which the sandbox is what confines. */
const open: EffectivePolicy = {
  allowed_programs: ["*"],
  program_paths: {},
  allowed_env: ["*"],
  allowed_env_refs: ["*"],
  inherited_env: ["LANG", "LC_ALL", "LOGNAME", "PATH", "SHELL", "TZ", "USER"],
  readable: [],
  writable: [],
  denied: sorted([".env", "*.key", "*.pem", "secrets/**", ".git/**"].flatMap((glob) => [glob, `**/${glob}`])),
  max_timeout_secs: 3600,
  max_output_bytes: 256 * 1024,
  max_read_bytes: 256 * 1024,
  max_write_bytes: 1024 * 1024,
  max_list_entries: 2000,
  max_args: 256,
  max_arg_bytes: 64 * 1024,
  max_spool_bytes: 256 * 1024 * 1024,
  idle_ttl_secs: 7 * day,
  max_ttl_secs: 30 * day,
  allow_session_sqlite: true,
  allow_code_steps: true,
  allow_elevated: true,
  follow_inside: false,
  require_landlock_abi: 0,
};

/**
 * A hard policy with the defaults for what it does not say. Where it lists programs, variables have to be listed too: LD_PRELOAD would make any
 * program every other.
 */
export function fromHard(hard: HardPolicy): EffectivePolicy {
  const { readable, writable, publisher_keys: _, ...rest } = hard;
  const listed = hard.allowed_programs !== undefined && !hard.allowed_programs.includes("*");
  const said = Object.fromEntries(Object.entries(rest).filter(([, value]) => value !== undefined));
  const whole: EffectivePolicy = {
    ...open,
    ...(listed && { allowed_env: [], allowed_env_refs: [] }),
    ...said,
    readable: layers(readable),
    writable: layers(writable),
  };
  for (const key of ["allowed_programs", "allowed_env", "allowed_env_refs", "inherited_env"] as const)
    whole[key] = names(whole[key]);
  return { ...whole, denied: sorted(whole.denied) };
}

/** What holds of `holds` where the client's restrictions are added. Never allows what `holds` does not. */
export function narrow(holds: EffectivePolicy, client: ClientPolicy): EffectivePolicy {
  const meet = (ours: string[], theirs: string[] | undefined) => (theirs ? common(ours, theirs) : ours);
  const least = (ours: number, theirs: number | undefined) => Math.min(ours, theirs ?? ours);
  const both = (ours: boolean, theirs: boolean | undefined) => ours && (theirs ?? true);
  return {
    ...holds,
    allowed_programs: meet(holds.allowed_programs, client.allowed_programs),
    allowed_env: meet(holds.allowed_env, client.allowed_env),
    allowed_env_refs: meet(holds.allowed_env_refs, client.allowed_env_refs),
    inherited_env: meet(holds.inherited_env, client.inherited_env),
    readable: layers(...holds.readable, client.readable),
    writable: layers(...holds.writable, client.writable),
    denied: sorted([...holds.denied, ...(client.denied ?? [])]),
    max_timeout_secs: least(holds.max_timeout_secs, client.max_timeout_secs),
    max_output_bytes: least(holds.max_output_bytes, client.max_output_bytes),
    max_read_bytes: least(holds.max_read_bytes, client.max_read_bytes),
    max_write_bytes: least(holds.max_write_bytes, client.max_write_bytes),
    max_list_entries: least(holds.max_list_entries, client.max_list_entries),
    allow_session_sqlite: both(holds.allow_session_sqlite, client.allow_session_sqlite),
    allow_code_steps: both(holds.allow_code_steps, client.allow_code_steps),
    allow_elevated: both(holds.allow_elevated, client.allow_elevated),
    follow_inside: both(holds.follow_inside, client.follow_inside),
    require_landlock_abi: Math.max(holds.require_landlock_abi, client.require_landlock_abi ?? 0),
  };
}

/**
 * What holds of a session's policy under a hard policy that may have changed since it was made: the narrower of both in everything. The same as
 * `holds`, and so of the same hash, where the hard policy has not been narrowed.
 */
export function renarrow(holds: EffectivePolicy, hard: EffectivePolicy): EffectivePolicy {
  const { readable, writable, program_paths, max_args, max_arg_bytes, max_spool_bytes, ...client } = hard;
  const { idle_ttl_secs, max_ttl_secs, ...rest } = client;
  return {
    ...narrow(holds, rest),
    readable: layers(...holds.readable, ...readable),
    writable: layers(...holds.writable, ...writable),
    program_paths,
    max_args: Math.min(holds.max_args, max_args),
    max_arg_bytes: Math.min(holds.max_arg_bytes, max_arg_bytes),
    max_spool_bytes: Math.min(holds.max_spool_bytes, max_spool_bytes),
    idle_ttl_secs: Math.min(holds.idle_ttl_secs, idle_ttl_secs),
    max_ttl_secs: Math.min(holds.max_ttl_secs, max_ttl_secs),
  };
}

/**
 * Whether the host's policy still allows all that `made` does, which an older program may have written: of keys that it did not know nothing was
 * promised.
 */
export function stillHolds(made: EffectivePolicy, hard: EffectivePolicy): boolean {
  const now = renarrow({ ...open, ...made }, hard);
  return (Object.keys(made) as (keyof EffectivePolicy)[]).every(
    (key) => hashOf(now[key]) === hashOf(made[key]),
  );
}

export function policyHash(policy: EffectivePolicy): string {
  return hashOf(policy);
}

function common(ours: readonly string[], theirs: readonly string[]): string[] {
  if (ours.includes("*")) return names(theirs);
  return theirs.includes("*") ? [...ours] : names(ours.filter((name) => theirs.includes(name)));
}

function names(list: readonly string[]): string[] {
  return list.includes("*") ? ["*"] : sorted(list);
}

/** Without those that let everything pass, and without those that are there already. */
function layers(...all: (readonly string[] | undefined)[]): string[][] {
  const found = new Map<string, string[]>();
  for (const layer of all) {
    if (!layer || layer.includes("**")) continue;
    const patterns = sorted(layer);
    found.set(JSON.stringify(patterns), patterns);
  }
  return [...found.keys()].sort().map((key) => found.get(key)!);
}

function sorted(list: readonly string[]): string[] {
  return [...new Set(list)].sort();
}
