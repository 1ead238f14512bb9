/** YAML files of the user and of the administrator: read whole, checked whole, with errors that name file, key and what would be right. */
import { closeSync, constants, fstatSync, openSync, readFileSync, type Stats } from "node:fs";
import { parseDocument } from "yaml";
import type { z } from "zod";
import { Fault, toFault } from "../fault.ts";

/**
 * The text of a file, undefined where there is none.
 * @param limit bytes that it may have
 * @param check is told of the very file that is read
 * @throws Fault that names the file: it cannot be read, is too long, or is no file
 */
export function readTextFile(
  file: string,
  { limit = 256 * 1024, check }: { limit?: number; check?: (stat: Stats) => void } = {},
): string | undefined {
  let fd: number | undefined;
  try {
    // Opening a FIFO would otherwise wait for who writes to it.
    fd = openSync(file, constants.O_RDONLY | constants.O_NONBLOCK);
    const stat = fstatSync(fd);
    if (!stat.isFile()) throw new Fault("invalid", `${file} is no regular file`);
    if (stat.size > limit) throw new Fault("invalid", `${file} is longer than ${limit / 1024} KiB`);
    check?.(stat);
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

/** @throws Fault "invalid" that names the file, and the line or the key */
export function parseYaml<S extends z.ZodType>(text: string, file: string, schema: S): z.infer<S> {
  const document = parseDocument(text);
  const [mistake] = document.errors;
  if (mistake) throw new Fault("invalid", `${file}: not YAML: ${mistake.message.split(/:?\n/)[0]}`);
  const parsed = schema.safeParse(value(document, file) ?? {});
  if (parsed.success) return parsed.data;
  throw new Fault("invalid", `${file}: ${explain(parsed.error.issues[0]!, schema)}`);
}

/** Aliases are resolved only here; too many of them throw. */
function value(document: ReturnType<typeof parseDocument>, file: string): unknown {
  try {
    return document.toJS();
  } catch (error) {
    throw new Fault("invalid", `${file}: not YAML: ${(error as Error).message}`, { cause: error });
  }
}

function explain(issue: z.core.$ZodIssue, schema: z.ZodType): string {
  const where = issue.path.map(String).join(".");
  if (issue.code === "unrecognized_keys") {
    const known = keysAt(schema, issue.path);
    return `unknown key ${[where, issue.keys[0]].filter(Boolean).join(".")}: known are ${known.join(" ")}`;
  }
  // Of a key that a record does not take, what is wrong with it is said one level deeper.
  const inner = issue.code === "invalid_key" ? issue.issues[0] : undefined;
  const message = inner?.message ?? issue.message;
  return where === "" ? message : `${where}: ${message}`;
}

/** The keys that a schema knows at a place in it. */
function keysAt(schema: z.ZodType, path: readonly PropertyKey[]): string[] {
  let at = bare(schema);
  for (const key of path) {
    const { shape, valueType } = at.def;
    const next = shape?.[String(key)] ?? valueType;
    if (!next) return [];
    at = bare(next);
  }
  return Object.keys(at.def.shape ?? {});
}

interface Inside {
  def: { shape?: Record<string, z.ZodType>; valueType?: z.ZodType; innerType?: z.ZodType; out?: z.ZodType };
}

/** Without what only makes it optional, gives it a default or comes before it. */
function bare(schema: z.ZodType): Inside {
  let at = schema as unknown as Inside;
  for (;;) {
    const inner = at.def.innerType ?? at.def.out;
    if (!inner) return at;
    at = inner as unknown as Inside;
  }
}
