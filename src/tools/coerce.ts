/** Values of the wrong type that can only mean one value of the right one. */
import { Validator } from "@cfworker/json-schema";
import { isObject } from "./repair.ts";

type Schema = Record<string, unknown>;

/**
 * Changes only properties that do not fit their schema, and only into something that does: "5" where a number is wanted, "true" for a
 * boolean, JSON text for an object or array, a number for a string, one item for a list; null where a property may be left out.
 * Says what was changed.
 */
export function coerce(value: unknown, schema: Schema, name = ""): { value: unknown; changes: string[] } {
  if (!isObject(value) || !isObject(schema.properties)) return { value, changes: [] };
  const result: Record<string, unknown> = {};
  const changes: string[] = [];
  const required = Array.isArray(schema.required) ? schema.required : [];
  for (const [key, given] of Object.entries(value)) {
    const wanted = schema.properties[key];
    const path = name ? `${name}.${key}` : key;
    if (!isObject(wanted)) {
      result[key] = given;
      continue;
    }
    if (given === null && !required.includes(key) && !fits(given, wanted)) continue;
    const inner = coerce(convert(given, wanted), wanted, path);
    result[key] = inner.value;
    changes.push(...inner.changes);
    if (inner.value !== given && inner.changes.length === 0)
      changes.push(`${path} taken as ${kind(inner.value)}`);
  }
  return { value: result, changes };
}

function convert(given: unknown, wanted: Schema): unknown {
  if (fits(given, wanted)) return given;
  return candidates(given).find((candidate) => fits(candidate, wanted)) ?? given;
}

function candidates(given: unknown): unknown[] {
  if (typeof given === "number" || typeof given === "boolean") return [String(given), [given]];
  if (typeof given !== "string") return [[given]];
  const text = given.trim();
  const found: unknown[] = [];
  if (/^(?:-?\d|[{[]|true$|false$)/i.test(text)) {
    try {
      found.push(JSON.parse(/^(?:true|false)$/i.test(text) ? text.toLowerCase() : text));
    } catch {
      // no JSON: the string stays what it is
    }
  }
  return [...found, [given]];
}

function fits(value: unknown, schema: Schema): boolean {
  return new Validator(schema, "2020-12").validate(value).valid;
}

function kind(value: unknown): string {
  return Array.isArray(value) ? "a list" : isObject(value) ? "an object" : `a ${typeof value}`;
}
