#!/usr/bin/env ollie-run
/** Takes the tasks off the session's plan and leaves other text. */
import { changePlan, isTask } from "./lib/plan.ts";

await changePlan((lines) => lines.filter((line) => !isTask(line)));
