import type { OpStart } from "../../protocol/operation.ts";

/** Characters of a title. */
const longest = 300;

/** What an operation does, for people: its command line, or the tool and its arguments. */
export function titleOf({ steps }: OpStart): string {
  const words = steps.map((step) => {
    if ("code" in step) return step.code.trim();
    if ("program" in step) return [step.program, ...step.args].join(" ");
    const { command } = step.args;
    return `${step.tool} ${typeof command === "string" ? command : JSON.stringify(step.args)}`;
  });
  const title = words.join(" && ").replace(/\s+/g, " ");
  return title.length > longest ? `${title.slice(0, longest - 1)}…` : title;
}
