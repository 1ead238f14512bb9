/** A sandbox config as it is written: YAML with the keys below, nothing resolved yet. */
import { closeSync, constants, fstatSync, openSync, readFileSync } from "node:fs";
import { parseDocument } from "yaml";
import { z } from "zod";
import { shippedData } from "../config/data.ts";
import { Fault, toFault } from "../fault.ts";

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
const sizeLimit = 64 * 1024;

/**
 * Reads the text of a config; nothing in it is an empty config.
 * @param file for errors
 * @throws Fault "invalid" that names the file, and the line or the key
 */
export function parseSandboxConfig(text: string, file: string): SandboxConfig {
  const document = parseDocument(text);
  const [mistake] = document.errors;
  if (mistake) throw new Fault("invalid", `${file}: not YAML: ${mistake.message.split(/:?\n/)[0]}`);
  const parsed = schema.safeParse(value(document, file) ?? {});
  if (!parsed.success) throw new Fault("invalid", `${file}: ${explain(parsed.error.issues[0]!)}`);
  return parsed.data;
}

/** Aliases are resolved only here; too many of them throw. */
function value(document: ReturnType<typeof parseDocument>, file: string): unknown {
  try {
    return document.toJS();
  } catch (error) {
    throw new Fault("invalid", `${file}: not YAML: ${(error as Error).message}`, { cause: error });
  }
}

function explain(issue: z.core.$ZodIssue): string {
  const where = issue.path.map(String).join(".");
  if (issue.code !== "unrecognized_keys") return where === "" ? issue.message : `${where}: ${issue.message}`;
  const keys = where === "" ? Object.keys(shape) : sectionKeys[where as keyof typeof sectionKeys];
  return `unknown key ${[where, issue.keys[0]].filter(Boolean).join(".")}: known are ${keys.join(" ")}`;
}

const sectionKeys = {
  filesystem: rights,
  network: ["unrestricted", "bind_tcp", "connect_tcp", "unix"],
  general: ["best_effort", "log_level"],
};

/** Undefined where the file does not exist. @throws Fault as `parseSandboxConfig`, or that it cannot be read */
export function readLayer(file: string): Layer | undefined {
  const text = readText(file);
  return text === undefined ? undefined : { file, config: parseSandboxConfig(text, file) };
}

/** Undefined where the file does not exist. @throws Fault that names the file: it cannot be read, is too long, or is no file */
export function readText(file: string): string | undefined {
  let fd: number | undefined;
  try {
    // Opening a FIFO would otherwise wait for who writes to it.
    fd = openSync(file, constants.O_RDONLY | constants.O_NONBLOCK);
    const stat = fstatSync(fd);
    if (!stat.isFile()) throw new Fault("invalid", `${file} is no regular file`);
    if (stat.size > sizeLimit) throw new Fault("invalid", `${file} is longer than ${sizeLimit / 1024} KiB`);
    return readFileSync(fd, "utf8");
  } catch (error) {
    if (error instanceof Fault) throw error;
    const fault = toFault(error);
    if (fault.kind === "missing" || (error as NodeJS.ErrnoException).code === "ENOTDIR") return undefined;
    throw new Fault(fault.kind, `cannot read ${file}: ${fault.message}`, { cause: error });
  } finally {
    if (fd !== undefined) closeSync(fd);
  }
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
