/** What becomes of an error that nobody caught. */
import type { Logger } from "pino";

/**
 * Logs it and goes on. It is a mistake in ollie, and what it leaves undone is one request or one turn; to end here would end all agents.
 * Whatever is on disk is as safe as at a crash.
 */
export function surviveMistakes(log: Logger): void {
  process.on("uncaughtException", (error) => log.error({ err: error }, "uncaught error"));
  process.on("unhandledRejection", (reason) => log.error({ err: reason }, "unhandled rejection"));
}
