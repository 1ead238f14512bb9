#!/usr/bin/env bun
/** What runs on other hosts. `--ok`: whoever has brought it here asks whether it runs. */
import { build } from "./config/version.ts";

if (process.argv[2] === "--ok") console.log(`ollie-remote ${build.version} ${build.target}`);
