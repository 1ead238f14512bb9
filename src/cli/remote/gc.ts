/** `ollie-remote gc`. */
import { sweep } from "../../remote/host/lifecycle/sweep.ts";
import { placesOf } from "../../remote/host/places.ts";
import type { SessionSwept } from "../../remote/protocol/exports.ts";
import { command } from "../program.ts";
import { writeOut } from "../stdio.ts";

export const gc = command({
  usage: "[--dry-run] [--json] [--root DIR]",
  about:
    "Removes sessions that nobody has used for as long as the policy keeps them (7 days, and 30 days after they were made), with all that is left of\n" +
    "them, and tools that none of the others uses. A project that a session worked in stays.",
  options: {
    "dry-run": { type: "boolean", short: "n", help: "only say what would go" },
    json: { type: "boolean", help: "as JSON" },
    root: { type: "string", value: "DIR", help: "where sessions are kept" },
  },
  words: [0, 0],
  async run({ values: { "dry-run": dry, json, root } }) {
    const swept = await sweep(placesOf(process.env, { root }), { dry });
    await writeOut(json ? `${JSON.stringify(swept)}\n` : report(swept, dry ?? false));
    return swept.problems.length > 0 ? 1 : 0;
  },
});

function report({ sessions, base, freed, problems }: SessionSwept, dry: boolean): string {
  const rows = sessions.map(({ sessionId, bytes, expired, until }) => {
    const fate = expired ? `${expired}, ${dry ? "would go" : "removed"}` : `until ${day(until)}`;
    return `${sessionId}  ${size(bytes).padStart(9)}  ${fate}`;
  });
  const total = `programs and tools: ${size(base)}${dry ? "" : `; freed: ${size(freed)}`}`;
  return `${[...rows, total, ...problems].join("\n")}\n`;
}

function day(time: number | undefined): string {
  return time === undefined ? "further notice" : new Date(time).toISOString().slice(0, 10);
}

function size(bytes: number): string {
  const units = ["B", "KiB", "MiB", "GiB"];
  let [value, unit] = [bytes, 0];
  for (; value >= 1024 && unit < units.length - 1; unit++) value /= 1024;
  return `${unit === 0 ? value : value.toFixed(1)} ${units[unit]}`;
}
