/** From what a model wrote to a call that can run, or to a text that tells the model what to write instead. */
import type { ModelCall } from "../backends/backend.ts";
import { check, describeArguments } from "./arguments.ts";
import { coerce } from "./coerce.ts";
import { isObject, parseArguments } from "./repair.ts";
import type { Prepared, Tool } from "./tool.ts";

/** Characters of the model's own text that an error quotes. */
const quoted = 300;

/**
 * Finds the tool among the loaded ones, reads the arguments, repairs them where there is only one way to understand them, and checks
 * them against the tool's schema. A call that was cut off or could mean two things is never run.
 */
export function prepare(call: ModelCall, loaded: readonly Tool[]): Prepared {
  const tool = find(call.name, loaded);
  if (!tool) return { ok: false, text: unknownTool(call.name, loaded) };
  const parsed = parseArguments(call.args);
  if (!parsed.ok) {
    return refuse(tool, `the arguments are not a JSON object (${parsed.reason}): ${quote(call.args)}`);
  }
  const { value, changes } = coerce(parsed.value, tool.schema);
  if (!isObject(value)) return refuse(tool, `the arguments are not a JSON object: ${quote(call.args)}`);
  const problems = check(value, tool);
  if (problems.length > 0) return refuse(tool, problems.join("; "));
  const repairs = [...parsed.repairs, ...changes];
  return { ok: true, tool, args: value, ...(repairs.length > 0 && { repaired: repairs.join(", ") }) };
}

/** By its name, or by a name that differs in case only. */
function find(name: string, loaded: readonly Tool[]): Tool | undefined {
  const exact = loaded.find((tool) => tool.name === name);
  if (exact) return exact;
  const similar = loaded.filter((tool) => tool.name.toLowerCase() === name.trim().toLowerCase());
  return similar.length === 1 ? similar[0] : undefined;
}

function unknownTool(name: string, loaded: readonly Tool[]): string {
  const names = loaded.map((tool) => tool.name).join(", ");
  return `There is no tool ${JSON.stringify(name)} loaded. Loaded: ${names || "none"}.`;
}

function refuse(tool: Tool, reason: string): Prepared {
  return { ok: false, text: `${tool.name} was not run: ${reason}. It takes ${describeArguments(tool)}.` };
}

function quote(text: string): string {
  return text.length > quoted ? `${text.slice(0, quoted)}… (${text.length} characters)` : text;
}
