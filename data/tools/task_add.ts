#!/usr/bin/env ollie-run
/** Adds tasks to the end of the session's plan. */
import { readArgs } from "ollie:tool";
import { changePlan } from "./lib/plan.ts";

const args = await readArgs<{ task?: string; tasks?: string[] }>();
const texts = [args.task ?? [], args.tasks ?? []]
  .flat()
  .map((text) => text.replace(/\s+/g, " ").trim())
  .filter((text) => text !== "");
if (texts.length === 0) throw new Error('there is nothing to add: give "task" or "tasks"');
await changePlan((lines) => [...lines, ...texts.map((text) => `- [ ] ${text}`)]);
