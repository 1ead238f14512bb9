/** Reading a model's arguments: strict JSON first, then what is not quite JSON but can only mean one thing. */
import { jsonrepair } from "jsonrepair";

export type Parsed =
  | { ok: true; value: Record<string, unknown>; repairs: string[] }
  | { ok: false; reason: string };

/**
 * Takes what weak models write around and instead of JSON: code fences, a JSON string that holds the object, trailing commas, single
 * quotes, unquoted keys, line breaks in strings, Python's True, False and None. Refuses what was cut off, quotes inside quotes,
 * unknown backslash escapes (a repair would change paths like C:\new) and anything else that takes a guess.
 */
export function parseArguments(text: string): Parsed {
  const trimmed = text.trim();
  if (trimmed === "") return { ok: true, value: {}, repairs: [] };
  const direct = parseJson(trimmed);
  if (direct) return unwrap(direct.value, []);
  const bare = trimmed.replace(/^```[a-z]*\s*\n?([\s\S]*?)\n?\s*```$/i, "$1").trim();
  const fenced = bare === trimmed ? [] : ["code fence taken off"];
  const inside = parseJson(bare);
  if (inside) return unwrap(inside.value, fenced);
  const reason = ambiguity(bare);
  if (reason) return { ok: false, reason };
  try {
    return unwrap(JSON.parse(jsonrepair(bare)), [...fenced, "JSON syntax mended"]);
  } catch (error) {
    return { ok: false, reason: (error as Error).message };
  }
}

export function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function parseJson(text: string): { value: unknown } | undefined {
  try {
    return { value: JSON.parse(text) };
  } catch {
    return undefined;
  }
}

/** Some models encode the object twice; null stands for no arguments. */
function unwrap(value: unknown, repairs: string[]): Parsed {
  if (isObject(value)) return { ok: true, value, repairs };
  if (value === null) return { ok: true, value: {}, repairs };
  const inner = typeof value === "string" ? parseJson(value) : undefined;
  if (inner && isObject(inner.value)) {
    return { ok: true, value: inner.value, repairs: [...repairs, "string taken as the object it holds"] };
  }
  return { ok: false, reason: `it is ${Array.isArray(value) ? "an array" : `a ${typeof value}`}` };
}

const token = /\s+|[{}[\],:]|"[^"\\]*(?:\\[\s\S][^"\\]*)*"|'[^'\\]*(?:\\[\s\S][^'\\]*)*'|[\w$.+-]+/y;
const identifier = /^[A-Za-z_$][\w$]*$/;
const literal = /^(?:true|false|null|True|False|None|-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?)$/;
const knownEscape = /\\(?:u[0-9a-fA-F]{4}|["'\\/bfnrt])/g;

/**
 * Why the text cannot be mended without guessing; undefined if it can. jsonrepair itself would complete what was cut off and take
 * unknown escapes apart. So every piece must stand where JSON's grammar has its kind, and every bracket must be closed; only the
 * spelling of strings, keys and literals and a comma before a closing bracket are free.
 */
function ambiguity(text: string): string | undefined {
  const open: ("}" | "]")[] = [];
  let expected: "key" | ":" | "value" | "," | "end" = "value";
  token.lastIndex = 0;
  for (let at = 0; at < text.length; at = token.lastIndex) {
    const piece = token.exec(text)?.[0];
    if (piece === undefined) return /["']/.test(text[at]!) ? "a string is not closed" : unexpected(text, at);
    if (piece.trim() === "") continue;
    if (piece === "{" || piece === "[") {
      if (expected !== "value") return unexpected(text, at);
      open.push(piece === "{" ? "}" : "]");
      expected = piece === "{" ? "key" : "value";
    } else if (piece === "}" || piece === "]") {
      if (open.pop() !== piece || (expected !== "," && expected !== (piece === "}" ? "key" : "value"))) {
        return unexpected(text, at);
      }
      expected = open.length > 0 ? "," : "end";
    } else if (piece === "," || piece === ":") {
      if (expected !== piece) return unexpected(text, at);
      expected = piece === ":" || open.at(-1) === "]" ? "value" : "key";
    } else {
      if (expected !== "key" && expected !== "value") return unexpected(text, at);
      const reason = misspelt(piece, expected === "key" ? identifier : literal);
      if (reason) return reason;
      expected = expected === "key" ? ":" : ",";
    }
  }
  return expected === "end" ? undefined : "it is cut off";
}

function unexpected(text: string, at: number): string {
  return `unexpected ${JSON.stringify(text.slice(at, at + 20))}`;
}

function misspelt(piece: string, bare: RegExp): string | undefined {
  if (!/^["']/.test(piece)) return bare.test(piece) ? undefined : `${piece.slice(0, 20)} is not quoted`;
  return piece.replace(knownEscape, "").includes("\\")
    ? "JSON has no such backslash escape; a backslash is \\\\"
    : undefined;
}
