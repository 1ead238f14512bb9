/** Completing an opening marker that a crash has cut, so that it says what it can and, like all of them, when its block began. */
import { blockTypes } from "./blocks.ts";

/** The shortest first: what is added for an unknown one must not need more room than the marker had. */
const types = [...blockTypes].sort((a, b) => a.length - b.length);
/** Stands in for a value that is lost. */
const lost = "?";
/** What may stand behind a cut time; the second is for the days of months that have no 31st. */
const earliest = ["2000-01-01T00:00:00.000Z", "2000-01-10T00:00:00.000Z"];

/** What is missing of an opening marker line, without its newline. `tail` begins with its first bracket. `now` as in RFC 3339. */
export function markerRest(tail: string, now: string): string {
  const [, type = "", attrs = ""] = /^\[{1,3}([a-z]*)(.*)$/s.exec(tail) ?? [];
  const bare = attrs.replace(/"(\\.|[^"\\])*"/gs, "quoted");
  if (bare.endsWith("]")) return "]]]".slice(/\]*$/.exec(bare)?.[0].length);
  const rest = attrs === "" ? typeRest(tail, type) : attrsRest(attrs, bare, now);
  const timed = / time=/.test(bare.includes('"') ? bare.slice(0, bare.indexOf('"')) : bare + rest);
  if (timed) return `${rest}]]]`;
  const blank = `${attrs}${rest}`.endsWith(" ") ? "" : " ";
  return `${rest}${blank}time=${now}]]]`;
}

function typeRest(tail: string, type: string): string {
  const brackets = "[[[".slice(tail.length);
  const whole = brackets ? "info" : (types.find((one) => one.startsWith(type)) ?? type);
  return `${brackets}${whole.slice(type.length)}`;
}

/** `bare`: the attributes without what is quoted in them, so that a quote in it is one that is open. */
function attrsRest(attrs: string, bare: string, now: string): string {
  if (bare.includes('"')) return `${escapeRest(attrs)}"`;
  const word = bare.slice(bare.lastIndexOf(" ") + 1);
  if (word === "") return "";
  const [key = "", value] = word.split("=");
  if (key === "time" && value) return timeRest(value);
  if ("time=".startsWith(word)) return `${"time=".slice(word.length)}${now}`;
  if (value === undefined) return `=${lost}`;
  return value === "" ? lost : "";
}

/** Completes a time that is cut anywhere to the earliest that it can have been. */
function timeRest(value: string): string {
  const rests = earliest.map((time) => time.slice(value.length));
  return rests.find((rest) => isTime(value + rest)) ?? "";
}

function isTime(text: string): boolean {
  const time = Date.parse(text);
  return !Number.isNaN(time) && new Date(time).toISOString() === text;
}

/** What is missing of an escape sequence of JSON that the text ends in. */
function escapeRest(text: string): string {
  const torn = /(?<!\\)(?:\\\\)*(\\(?:u[0-9a-f]{0,3})?)$/.exec(text)?.[1] ?? "";
  if (torn === "") return "";
  return torn === "\\" ? "\\" : "0".repeat("\\u0000".length - torn.length);
}
