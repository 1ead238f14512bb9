/** `session.json`: what a session is, apart from its agents and its plan. */
import { existsSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { z } from "zod";
import { Fault, toFault } from "../fault.ts";
import { newId } from "../ids.ts";
import { isErrno } from "./disk.ts";

const strings = z.record(z.string(), z.string());

/** Fields of a newer version are kept. */
export const sessionSchema = z.looseObject({
  v: z.literal(1),
  /** Also the name of a folder. */
  id: z.string().regex(/^\w+$/, "must be letters and digits"),
  /** Milliseconds since 1970. */
  created: z.number(),
  /** The session keys of `cfg` that are set (`cwd`, `remote`, `remoteSession`, `sandbox`, `share`); the name is the folder's. */
  cfg: strings,
  /** What `env` gives to the session's tools. */
  env: strings,
  /** Which session on another host is this one's, with the key that its operations are sealed with: shown nowhere. */
  locator: z.record(z.string(), z.unknown()).optional(),
});

export type SessionJson = z.infer<typeof sessionSchema>;

/** What is wrong with a file that is not there. */
export const missing = "it was missing";

export interface ReadSettings {
  json: SessionJson;
  /** What was wrong with the file, in words. `json` is then made of the fields that could be read, and of defaults. */
  wrong?: string;
}

/**
 * Reads the settings in any condition. `created` stands in for a lost time of creation. Throws a Fault where there is no session at
 * all, where another version of ollie wrote it, and where the disk cannot be read.
 */
export async function readSettings(path: string, created: number): Promise<ReadSettings> {
  const text = await readText(path);
  let value: unknown;
  let wrong: string;
  try {
    if (text === undefined) throw new Fault("missing", missing);
    value = JSON.parse(text);
    const read = sessionSchema.safeParse(value);
    if (read.success) return { json: read.data };
    wrong = z.prettifyError(read.error).replace(/\s+/g, " ");
  } catch (error) {
    wrong = toFault(error, "it is not JSON").message;
    value = fieldsOf(text ?? "");
  }
  const { v, ...fields } = isObject(value) ? value : {};
  if (typeof v === "number" && v !== 1)
    throw new Fault("invalid", `${path} was written by another version of ollie; this one leaves it alone`);
  return { json: usable(fields, created), wrong };
}

/** Undefined where the file is missing in what is a session otherwise. */
async function readText(path: string): Promise<string | undefined> {
  try {
    return await readFile(path, "utf8");
  } catch (error) {
    const folder = dirname(path);
    if (!isErrno(error, "ENOENT")) throw toFault(error, `${path} could not be read`);
    if (existsSync(join(folder, "agents"))) return undefined;
    throw new Fault("missing", `${folder} is no session: it has neither session.json nor agents`);
  }
}

/** What can be read in a file that is not JSON as a whole, since ollie writes a field a line. */
function fieldsOf(text: string): Record<string, unknown> {
  const fields: Record<string, unknown> = {};
  let inside = fields;
  for (const line of text.split("\n")) {
    const [, key, value] = /^\s*("(?:\\.|[^"\\])*")\s*:\s*(.*?),?\s*$/.exec(line) ?? [];
    const name = key && parsed(key);
    if (/^\s*\}/.test(line)) inside = fields;
    else if (typeof name !== "string") continue;
    else if (value === "{") {
      inside = {};
      fields[name] = inside;
    } else inside[name] = parsed(value!);
  }
  return fields;
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

function usable(fields: Record<string, unknown>, created: number): SessionJson {
  const { shape } = sessionSchema;
  const id = shape.id.safeParse(fields.id);
  const time = shape.created.safeParse(fields.created);
  return {
    ...fields,
    v: 1,
    id: id.success ? id.data : newId(),
    created: time.success ? time.data : created,
    cfg: stringsOf(fields.cfg),
    env: stringsOf(fields.env),
    locator: shape.locator.safeParse(fields.locator).data,
  };
}

function stringsOf(value: unknown): Record<string, string> {
  const entries = Object.entries(isObject(value) ? value : {});
  return Object.fromEntries(
    entries.filter((entry): entry is [string, string] => typeof entry[1] === "string"),
  );
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
