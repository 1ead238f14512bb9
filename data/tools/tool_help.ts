#!/usr/bin/env ollie-run
/** Shows what a tool's sidecar says of it. */
import { findTool, print, readArgs } from "ollie:tool";

const { name } = await readArgs<{ name: string }>();
const tool = await findTool(name);
if (!tool) throw new Error(`there is no tool ${JSON.stringify(name)} on this host`);
print(`${name}: ${tool.description}`);
if (tool.documentation) print(`\n${tool.documentation}`);
print(`\nArguments (JSON Schema): ${JSON.stringify(tool.schema)}`);
