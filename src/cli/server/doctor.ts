import { command } from "../program.ts";
import { writeOut } from "../stdio.ts";
import { type Finding, findings } from "./findings.ts";
import { whichOptions } from "./options.ts";

const options = { ...whichOptions, json: { type: "boolean", help: "print JSON" } } as const;

export const doctor = command({
  usage: "[OPTIONS] [--json]",
  about:
    "Checks the configuration, the backends, how far tools can be confined, and what this machine has, and says what to do. Status 1 if\n" +
    "something stands in the way of running agents; a warning is about something that works only in part.",
  options,
  words: [0, 0],
  async run({ values }) {
    const found: Finding[] = [];
    for await (const finding of findings(values)) {
      found.push(finding);
      if (!values.json) await writeOut(line(finding));
    }
    if (values.json) await writeOut(`${JSON.stringify(found, null, 2)}\n`);
    return found.some(({ status }) => status === "fail") ? 1 : 0;
  },
});

function line({ about, status, text, advice }: Finding): string {
  return `${status.padEnd(4)}  ${about.padEnd(9)}  ${text}${advice ? `\n${" ".repeat(17)}→ ${advice}` : ""}\n`;
}
