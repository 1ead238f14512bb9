#!/usr/bin/env bun
/** The server's program. */
import { runProgram } from "./cli/program.ts";
import { olliesrv } from "./cli/server/program.ts";

process.exit(await runProgram(olliesrv, process.argv.slice(2)));
