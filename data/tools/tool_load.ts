#!/usr/bin/env ollie-run
/** Loads tools into the agent that calls. */
import { call, nine, print, readArgs } from "ollie:tool";

const { names } = await readArgs<{ names: string[] }>();
// A "-" in front would unload.
const bad = names.find((name) => !/^[a-zA-Z0-9_][a-zA-Z0-9_-]*$/.test(name));
if (bad !== undefined) throw new Error(`${JSON.stringify(bad)} is no tool's name`);
await nine.write(`session/${call.session}/agent/${call.agent}/tools`, `${names.join("\n")}\n`);
print(`Loaded: ${names.join(", ")}. Call them in your next step.`);
