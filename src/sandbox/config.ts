/** A sandbox config as it is written: YAML with the keys below, nothing resolved yet. */
import { z } from "zod";
import { shippedData } from "../config/data.ts";
import { parseYaml, readTextFile } from "../config/yaml.ts";

/** From the least to the most; each has what the name says: read, execute, write. */
export const rights = ["ro", "rox", "rw", "rwx"] as const;
export type Right = (typeof rights)[number];

/** A key without a value is an empty list. */
const list = <T extends z.ZodType>(item: T) =>
  z
    .array(item, "must be a list")
    .nullish()
    .transform((items) => items ?? []);
const path = z
  .string({ error: ({ input }) => (input === null ? 'is empty: write "~" in quotes' : "must be a path") })
  .regex(/^(\/|~$|~\/|\{)[^\0]*$/, "must be an absolute path, or begin with ~/ or a {TEMPLATE}");
const variable = z
  .string("must be the name of a variable")
  .regex(/^([A-Za-z_]\w*)?\*?$/, "must be the name of a variable, which may end in *")
  .min(1, "must be the name of a variable");
const port = z.int("must be a port from 0 to 65535").min(0).max(65535, "must be a port from 0 to 65535");
const flag = z.boolean("must be true or false").optional();

/** The words of the kernel's log that landrun knows; ollie has one level for all, so they are only checked. */
const logLevels = ["error", "warn", "info", "debug"] as const;

const shape = {
  /** Whether it goes on top of what comes before it; false: it stands alone. */
  extends: flag,
  filesystem: section({ ro: list(path), rox: list(path), rw: list(path), rwx: list(path) }),
  env: list(variable),
  network: section({ unrestricted: flag, bind_tcp: list(port), connect_tcp: list(port), unix: list(path) }),
  general: section({
    best_effort: flag,
    log_level: z.enum(logLevels, `must be one of ${logLevels.join(", ")}`).optional(),
  }),
};
const schema = z.strictObject(shape, "must be keys and values");

function section<T extends z.ZodRawShape>(keys: T) {
  const object = z.strictObject(keys, "must be keys and values");
  return z.preprocess((value) => value ?? {}, object);
}

export type SandboxConfig = z.infer<typeof schema>;

/** A config and where it came from. */
export interface Layer {
  /** Path of its file; undefined = the shipped default. */
  file?: string;
  config: SandboxConfig;
}

/** Bytes that a config may have: it is read again and again. */
export const sizeLimit = 64 * 1024;

/**
 * Reads the text of a config; nothing in it is an empty config.
 * @param file for errors
 * @throws Fault "invalid" that names the file, and the line or the key
 */
export function parseSandboxConfig(text: string, file: string): SandboxConfig {
  return parseYaml(text, file, schema);
}

/** Undefined where the file does not exist. @throws Fault as `parseSandboxConfig`, or that it cannot be read */
export function readLayer(file: string): Layer | undefined {
  const text = readTextFile(file, { limit: sizeLimit });
  return text === undefined ? undefined : { file, config: parseSandboxConfig(text, file) };
}

let shipped: Layer | undefined;

/** What holds where nobody has said anything. */
export function shippedDefault(): Layer {
  if (!shipped) {
    const name = "sandbox/default.yaml";
    const text = shippedData().find(([path]) => path === name)![1];
    shipped = { config: parseSandboxConfig(text, name) };
  }
  return shipped;
}
