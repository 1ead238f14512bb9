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
  const { properties, required } = schema;
  if (!isObject(value) || !isObject(properties)) return { value, changes: [] };
  const changes: string[] = [];
  const entries = Object.entries(value).flatMap(([key, given]): [string, unknown][] => {
    const wanted = Object.hasOwn(properties, key) ? properties[key] : undefined;
    if (!isObject(wanted)) return [[key, given]];
    if (given === null && !(Array.isArray(required) && required.includes(key)) && !fits(given, wanted))
      return [];
    const path = name ? `${name}.${key}` : key;
    const converted = convert(given, wanted);
    const inner = coerce(converted, wanted, path);
    changes.push(...(converted === given ? [] : [`${path} taken as ${kind(converted)}`]), ...inner.changes);
    return [[key, inner.value]];
  });
  // Not by assignment: a key "__proto__" would become something else.
  return { value: Object.fromEntries(entries), changes };
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
