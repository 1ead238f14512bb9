/** Checking arguments against a tool's schema, and saying in a model's terms what is wrong. */
import { type OutputUnit, Validator } from "@cfworker/json-schema";
import type { Tool } from "./tool.ts";

type Schema = Record<string, unknown>;

/** By schema; a tool keeps its schema object for as long as its sidecar does not change. */
const checkers = new WeakMap<Schema, { schema: Schema; validator: Validator }>();

/** What is wrong, a few words a property; empty if nothing is. */
export function check(args: Record<string, unknown>, tool: Tool): string[] {
  const { schema, validator } = checker(tool.schema);
  const { valid, errors } = validator.validate(args);
  return valid ? [] : [...new Set(leaves(errors).map((error) => explain(error, args, schema)))];
}

/** A schema that does not speak of further properties allows none: a misspelt optional one must not be dropped silently. */
function checker(own: Schema): { schema: Schema; validator: Validator } {
  const known = checkers.get(own);
  if (known) return known;
  const open = "additionalProperties" in own || !("properties" in own);
  const schema = open ? own : { ...own, additionalProperties: false };
  const made = { schema, validator: new Validator(schema, "2020-12", false) };
  checkers.set(own, made);
  return made;
}

/** `{path: string, offset?: integer}` */
export function describeArguments(tool: Tool): string {
  const properties = Object.entries((tool.schema.properties ?? {}) as Record<string, Schema>);
  if (properties.length === 0) return "no arguments";
  const required = (tool.schema.required ?? []) as string[];
  return `{${properties.map(([name, schema]) => `${name}${required.includes(name) ? "" : "?"}: ${typeName(schema)}`).join(", ")}}`;
}

function typeName(schema: Schema): string {
  if (Array.isArray(schema.enum)) return schema.enum.map((value) => JSON.stringify(value)).join(" | ");
  if (schema.type === "array") return `${typeName((schema.items ?? {}) as Schema)}[]`;
  if (Array.isArray(schema.type)) return schema.type.join(" | ");
  if (Array.isArray(schema.anyOf)) return schema.anyOf.map((part) => typeName(part as Schema)).join(" | ");
  return typeof schema.type === "string" ? schema.type : "any value";
}

/** Keywords whose errors only repeat that of a part, and what the library calls the schema `false`. */
const containers = ["properties", "items", "prefixItems", "patternProperties", "$ref", "allOf", "false"];

/** The errors that say something: those at the bottom, but of alternatives the one that speaks of all. */
function leaves(errors: OutputUnit[]): OutputUnit[] {
  return errors.filter(
    ({ keyword, keywordLocation }) =>
      !containers.includes(keyword) && !/\/(?:anyOf|oneOf|not)\//.test(keywordLocation),
  );
}

function explain(
  { keyword, keywordLocation, instanceLocation, error }: OutputUnit,
  args: unknown,
  root: Schema,
): string {
  const path = names(instanceLocation);
  const value = at(args, path);
  const schema = at(root, names(keywordLocation).slice(0, -1)) as Schema | undefined;
  const property = /"(.+)"/.exec(error)?.[1] ?? "";
  switch (keyword) {
    case "required":
      return `${[...path, property].join(".")} is missing`;
    case "additionalProperties":
      return `there is no property ${[...path, property].join(".")}`;
    case "type":
    case "enum":
    case "anyOf":
    case "oneOf":
      return `${path.join(".")} must be ${typeName(schema ?? {})}, not ${show(value)}`;
    default:
      return `${path.join(".")} must have ${keyword} ${show(schema?.[keyword])}, it is ${show(value)}`;
  }
}

/** Of a JSON pointer in the library's form: RFC 6901 with URI escapes. */
function names(pointer: string): string[] {
  return pointer
    .split("/")
    .slice(1)
    .map((name) => decodeURIComponent(name).replaceAll("~1", "/").replaceAll("~0", "~"));
}

function at(value: unknown, path: string[]): unknown {
  return path.reduce<unknown>((inner, key) => (inner as Record<string, unknown> | undefined)?.[key], value);
}

function show(value: unknown): string {
  const text = JSON.stringify(value) ?? "nothing";
  return text.length > 60 ? `${text.slice(0, 60)}…` : text;
}
