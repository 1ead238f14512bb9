/** `remotes.yaml`: how other hosts are reached, and what sessions may do there. A target needs no entry in it. */
import { join } from "node:path";
import { z } from "zod";
import { configFolder, type Environment } from "../../config/paths.ts";
import { parseYaml, readTextFile } from "../../config/yaml.ts";
import { Fault } from "../../fault.ts";
import { parseTarget } from "../../ssh/target.ts";
import type { SshTarget } from "../../ssh/transport.ts";
import type { BootOptions } from "../bootstrap/bootstrap.ts";
import { maxFrame } from "../protocol/limits.ts";
import { refProblem } from "./env-refs.ts";
import type { EnvRefs } from "./host-policy.ts";
import { absolutePath, type ClientPolicy, clientPolicy, variableName } from "./keys.ts";

const seconds = (most: number) =>
  z
    .number("must be a number of seconds")
    .positive("must be more than 0 seconds")
    .max(most, `must be at most ${most} seconds`)
    .optional();
const section = <T extends z.ZodRawShape>(keys: T) =>
  z.preprocess((value) => value ?? {}, z.strictObject(keys, "must be keys and values"));
const choice = <const T extends readonly string[]>(words: T) =>
  z.enum(words, `must be one of ${words.join(", ")}`);

const environmentRefs = z
  .record(
    variableName,
    z.strictObject(
      { kind: choice(["host", "session_sqlite"]) },
      "must be { kind: host } or { kind: session_sqlite }",
    ),
    "must be names and kinds",
  )
  .superRefine((refs, context) => {
    for (const [name, ref] of Object.entries(refs)) {
      const problem = refProblem(name, ref.kind);
      if (problem) context.addIssue({ code: "custom", path: [name], message: problem });
    }
  });

const target = z.strictObject(
  {
    kind: z.literal("ssh", "must be ssh"),
    /** `[user@]host[:port]`, or an alias of the ssh configuration. */
    host_alias: z.string("must be a host").superRefine((name, context) => {
      try {
        parseTarget(name);
      } catch (error) {
        context.addIssue({ code: "custom", message: (error as Error).message });
      }
    }),
    ssh_program: absolutePath.optional(),
    ssh_config_path: absolutePath.optional(),
    known_hosts_path: absolutePath.optional(),
    bootstrap_command: absolutePath.optional(),
    via: choice(["auto", "ssh2", "openssh"]).optional(),
    /** `batch`: nobody is asked for passphrases, codes or unknown keys. */
    auth: choice(["askpass", "batch"]).default("askpass"),
    new_host_key: choice(["refuse", "ask", "accept"]).default("ask"),
    /** What becomes of a call whose host is out of reach for `reconnect_grace_secs`: the turn pauses, or the model is told. */
    on_loss: choice(["wait", "report"]).default("wait"),
    environment_refs: z.preprocess((value) => value ?? {}, environmentRefs),
    runner: section({
      local_runner_path: absolutePath.optional(),
      target_triple: z
        .string("must be a target triple")
        .regex(
          /^[a-z0-9_]+(?:-[a-z0-9_.]+){1,3}$/,
          "must be a target triple, such as x86_64-unknown-linux-gnu",
        )
        .optional(),
      remote_session_root: absolutePath.optional(),
      remote_hard_policy_path: absolutePath.optional(),
    }),
    timeouts: section({
      connect_secs: seconds(3600).default(15),
      upload_secs: seconds(24 * 3600),
      rpc_secs: seconds(3600).default(30),
      close_secs: seconds(3600).default(10),
      reconnect_grace_secs: seconds(7 * 24 * 3600).default(120),
    }),
    limits: section({
      max_line_bytes: z
        .int("must be a number of bytes")
        .min(256 * 1024, "must be at least 262144: pieces of bulk data have to fit")
        .max(maxFrame, `must be at most ${maxFrame}`)
        .default(maxFrame),
      max_install_output_bytes: z
        .int("must be a number of bytes")
        .min(1024, "must be at least 1024")
        .max(16 * 1024 * 1024, "must be at most 16777216")
        .default(64 * 1024),
    }),
    policy: z.preprocess((value) => value ?? {}, clientPolicy),
  },
  "must be keys and values",
);

const remotes = z.strictObject(
  {
    schema_version: z.literal(1, "must be 1"),
    default_target: z.string("must be the name of a target").optional(),
    targets: z.record(
      z.string().regex(/^[\w.-]+$/, "must be a name of letters, digits, and . _ -"),
      target,
      "must be names and targets",
    ),
  },
  "must be keys and values",
);
type Target = z.infer<typeof target>;

/** Everything that is known of a target before it is reached. Milliseconds and bytes. */
export interface Profile {
  /** Of the entry in remotes.yaml; undefined: there is none. */
  name?: string;
  ssh: SshTarget;
  boot: Pick<BootOptions, "root" | "policy" | "bootstrapCommand" | "localRunner" | "targetTriple" | "stall">;
  envRefs: EnvRefs;
  policy: ClientPolicy;
  onLoss: "wait" | "report";
  timeouts: {
    connect: number;
    /** Of a whole upload; undefined: it may take as long as bytes are accepted. */
    upload?: number;
    /** Until a request is answered; an operation has its own limit. */
    rpc: number;
    close: number;
    reconnectGrace: number;
  };
  limits: { maxFrame: number; maxInstallOutput: number };
}

/** Milliseconds without a byte accepted after which an upload is given up. */
const stall = 30_000;

export class Remotes {
  readonly #targets: Readonly<Record<string, Target>>;

  constructor(
    /** The file, whether it exists or not. */
    readonly file: string,
    targets: Readonly<Record<string, Target>>,
    readonly defaultTarget: string | undefined,
    private readonly via: SshTarget["via"],
  ) {
    this.#targets = targets;
  }

  /** Names of entries, sorted. */
  get names(): string[] {
    return Object.keys(this.#targets).sort();
  }

  /**
   * @param wanted what `remote=` says: the name of an entry, else a host; empty: the default target
   * @throws Fault that says what a host looks like, or that there is no default
   */
  profileFor(wanted: string): Profile {
    const name = wanted || this.defaultTarget;
    if (name === undefined)
      throw new Fault(
        "missing",
        `no target is named and ${this.file} has no default_target: name a host or a target`,
      );
    if (Object.hasOwn(this.#targets, name)) return toProfile(this.#targets[name]!, this.via, name);
    parseTarget(name);
    return toProfile(target.parse({ kind: "ssh", host_alias: name }), this.via);
  }
}

/** Where the file is: OLLIE_REMOTES, else in the config folder. @throws Fault where OLLIE_REMOTES is relative */
export function remotesFile(environment: Environment, config?: string): string {
  const file = environment.OLLIE_REMOTES;
  if (!file) return join(configFolder(environment, config), "remotes.yaml");
  if (!file.startsWith("/")) throw new Fault("invalid", `OLLIE_REMOTES: ${file} must be an absolute path`);
  return file;
}

/**
 * Reads the targets; no file is no targets.
 * @param via what OLLIE_SSH says, for targets that do not say anything themselves
 * @throws Fault "invalid" that names file, key and what would be right
 */
export function loadRemotes(file: string, via: SshTarget["via"] = "auto"): Remotes {
  const text = readTextFile(file);
  if (text === undefined) return new Remotes(file, {}, undefined, via);
  const { targets, default_target: first } = parseYaml(text, file, remotes);
  if (first !== undefined && !Object.hasOwn(targets, first))
    throw new Fault(
      "invalid",
      `${file}: default_target: there is no target ${first}: there are ${Object.keys(targets).sort().join(", ") || "none"}`,
    );
  return new Remotes(file, targets, first, via);
}

function toProfile(entry: Target, via: SshTarget["via"], name?: string): Profile {
  const { runner, timeouts, limits } = entry;
  const milliseconds = (secs: number) => Math.round(secs * 1000);
  const connect = milliseconds(timeouts.connect_secs);
  return {
    name,
    ssh: {
      name: entry.host_alias,
      configFile: entry.ssh_config_path,
      knownHosts: entry.known_hosts_path,
      sshProgram: entry.ssh_program,
      connectTimeout: connect,
      via: entry.via ?? via,
      batch: entry.auth === "batch",
      newHostKey: entry.new_host_key,
    },
    boot: {
      root: runner.remote_session_root,
      policy: runner.remote_hard_policy_path,
      bootstrapCommand: entry.bootstrap_command,
      localRunner: runner.local_runner_path,
      targetTriple: runner.target_triple,
      stall,
    },
    envRefs: entry.environment_refs,
    policy: entry.policy,
    onLoss: entry.on_loss,
    timeouts: {
      connect,
      upload: timeouts.upload_secs === undefined ? undefined : milliseconds(timeouts.upload_secs),
      rpc: milliseconds(timeouts.rpc_secs),
      close: milliseconds(timeouts.close_secs),
      reconnectGrace: milliseconds(timeouts.reconnect_grace_secs),
    },
    limits: { maxFrame: limits.max_line_bytes, maxInstallOutput: limits.max_install_output_bytes },
  };
}
