/**
 * The keys of a policy, as YAML has them. A client says some of them in a profile (`policy:`), the host's administrator in a hard policy
 * file; what holds is made of both (effective.ts). A key that is not there does not restrict.
 */
import { isAbsolute, normalize } from "node:path";
import { z } from "zod";

const seconds = z.number("must be a number of seconds").positive("must be more than 0 seconds");
const count = z.int("must be a whole number").positive("must be more than 0");
const flag = z.boolean("must be true or false");
const list = (item: z.ZodType<string>) =>
  z.array(item, "must be a list").max(1000, "has more than 1000 entries");

/** A name as a program is asked for, `./gradlew` as well; or `*`, any. */
const program = z
  .string("must be the name of a program")
  .regex(/^[^\s\0]+$/, "must be the name of a program, or * for any");
export const variableName = z
  .string("must be the name of a variable")
  .regex(/^[A-Za-z_]\w*$/, "must be the name of a variable");
const variable = z.union([z.literal("*"), variableName], "must be the name of a variable, or * for any");
export const absolutePath = z
  .string("must be a path")
  .refine((path) => isAbsolute(path) && !path.includes("\0"), "must be an absolute path")
  .transform((path) => normalize(path));
/** Of paths below the working folder. `*` stops at a slash, `**` does not; names that begin with a dot are like others. */
const glob = z
  .string("must be a pattern of paths")
  .min(1, "must be a pattern of paths")
  .max(1024, "is too long")
  .refine(
    (text) => !text.startsWith("/") && !text.split("/").includes(".."),
    "must be relative to the working folder",
  )
  .refine((text) => !text.startsWith("!"), "cannot be negated: use `denied`")
  .refine((text) => !text.includes("\0"), "cannot hold a NUL");

const shared = {
  allowed_programs: list(program).optional(),
  /** Names of variables that a request may set for its program. */
  allowed_env: list(variable).optional(),
  /** Names of variables whose values the host finds (`environment_refs`). */
  allowed_env_refs: list(variable).optional(),
  /** Names of variables that programs have from the host's own environment. */
  inherited_env: list(variableName).optional(),
  readable: list(glob).optional(),
  writable: list(glob).optional(),
  denied: list(glob).optional(),
  max_timeout_secs: seconds.optional(),
  max_output_bytes: count.optional(),
  max_read_bytes: count.optional(),
  max_write_bytes: count.optional(),
  max_list_entries: count.optional(),
  allow_session_sqlite: flag.optional(),
  /** Steps that are a program's text for an interpreter; its interpreter must be an allowed program as well. */
  allow_code_steps: flag.optional(),
  /** Calls outside the sandbox, and as root, that the local user has allowed. */
  allow_elevated: flag.optional(),
  /** Links that stay below the working folder are followed when files are read. */
  follow_inside: flag.optional(),
  /** Version of Landlock that must be enforced; 0 = none. */
  require_landlock_abi: z.int("must be a version, 0 for none").min(0).optional(),
};

/** `policy:` of a profile. */
export const clientPolicy = z.strictObject(shared, "must be keys and values");
export type ClientPolicy = z.infer<typeof clientPolicy>;

/** A hard policy file. */
export const hardPolicy = z.strictObject(
  {
    ...shared,
    program_paths: z.record(program, absolutePath, "must be names and paths").optional(),
    max_args: count.optional(),
    max_arg_bytes: count.optional(),
    /** Bytes of output that are kept of one operation. */
    max_spool_bytes: count.optional(),
    /** How long a session is kept that nobody is attached to, and how long any is. */
    idle_ttl_secs: seconds.optional(),
    max_ttl_secs: seconds.optional(),
    /** Ed25519 keys, base64, of whoever may have signed a program that is installed here. None = nothing has to be signed. */
    publisher_keys: list(
      z
        .base64("must be an Ed25519 key in base64")
        .refine((text) => Buffer.from(text, "base64").length === 32, {
          error: "must be the 32 bytes of an Ed25519 key in base64",
        }),
    ).optional(),
  },
  "must be keys and values",
);
export type HardPolicy = z.infer<typeof hardPolicy>;
