#!/usr/bin/env bun
/** The 9P client of the command line. */
import { ollie9p } from "./cli/client/program.ts";
import { runProgram } from "./cli/program.ts";

process.exit(await runProgram(ollie9p, process.argv.slice(2)));
