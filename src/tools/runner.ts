/** `ollie-run FILE`: runs a TypeScript tool inside this binary, so that a host needs neither Bun nor Node. */
import { resolve } from "node:path";
import { plugin } from "bun";
import { shortLived } from "../exec/env.ts";
import { kit } from "./kit.ts";

/**
 * Imports the file with "ollie:tool" and "ollie:jsonrpc" at its disposal. The caller then lets the process end by itself, with 0. An
 * error that the tool does not catch ends it with 1 and its message, without the stack, on stderr.
 */
export async function runToolFile(file: string): Promise<void> {
  plugin({
    name: "ollie",
    setup(build) {
      build.module("ollie:tool", () => ({ exports: { ...kit }, loader: "object" }));
      build.module("ollie:jsonrpc", async () => ({
        exports: { ...(await import("vscode-jsonrpc/node")) },
        loader: "object",
      }));
    },
  });
  // Meant for this process; what the tool starts may be long at work.
  for (const name of Object.keys(shortLived)) delete process.env[name];
  process.on("uncaughtException", explain);
  process.on("unhandledRejection", explain);
  try {
    await import(resolve(file));
  } catch (error) {
    explain(error);
  }
}

function explain(error: unknown): void {
  kit.fail(error instanceof Error ? error.message : String(error));
}
