/** The log: one JSON object a line on stderr. */
import { type Logger, pino } from "pino";
import type { LogLevel } from "../../config/settings.ts";

/** Fields that hold secrets, wherever in an event they stand. */
const secret = ["authorization", "apiKey", "key", "token", "password"];

export function makeLog(level: LogLevel): Logger {
  const paths = secret.flatMap((name) => [name, `*.${name}`, `*.*.${name}`]);
  return pino(
    {
      level,
      base: { pid: process.pid },
      timestamp: pino.stdTimeFunctions.isoTime,
      redact: [...paths, '*["x-api-key"]'],
    },
    // Written at once: the last words of a server that dies are the ones that matter.
    pino.destination({ fd: 2, sync: true }),
  );
}
