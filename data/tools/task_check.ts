#!/usr/bin/env ollie-run
/** Marks one task of the session's plan as done. */
import { readArgs } from "ollie:tool";
import { changePlan, type Task, tasksOf } from "./lib/plan.ts";

const { task: wanted } = await readArgs<{ task: string }>();
await changePlan((lines) => {
  const { line } = find(tasksOf(lines), wanted.trim());
  return lines.map((text, i) => (i === line ? text.replace("[ ]", "[x]") : text));
});

function find(tasks: Task[], name: string): Task {
  if (tasks.length === 0) throw new Error("the plan has no tasks; task_add adds some");
  const numbered = /^#?\d+\.?$/.test(name)
    ? tasks[Number.parseInt(name.replace("#", ""), 10) - 1]
    : undefined;
  if (numbered) return numbered;
  const exact = tasks.filter(({ text }) => text === name);
  const open = tasks.filter(({ text, done }) => !done && text.toLowerCase().includes(name.toLowerCase()));
  const found = exact.length > 0 ? exact : open;
  if (found.length === 1) return found[0]!;
  const list = tasks.map(({ text }, i) => `${i + 1}. ${text}`).join("\n");
  throw new Error(
    `${found.length === 0 ? "no" : "more than one"} task fits ${JSON.stringify(name)}; name one by its number:\n${list}`,
  );
}
