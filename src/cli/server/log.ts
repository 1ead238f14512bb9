/** The log: one JSON object a line on stderr. */
import { type Logger, pino } from "pino";
import { Secrets } from "../../config/secrets.ts";
import type { LogLevel } from "../../config/settings.ts";

/** Fields that hold secrets, wherever in an event they stand. */
const secret = ["authorization", "apiKey", "key", "token", "password"];

/** Bytes of log that wait for a disk that does not take them. */
const backlog = 1024 * 1024;

/** @param secrets what no line may hold, wherever it came from */
export function makeLog(level: LogLevel, secrets = new Secrets()): Logger {
  const paths = secret.flatMap((name) => [name, `*.${name}`, `*.*.${name}`]);
  // Written at once: the last words of a server that dies are the ones that matter.
  const destination = pino.destination({ fd: 2, sync: true, maxLength: backlog });
  // A full disk is no reason to fail at what was to be logged: the lines wait, and are written with the next one that can be.
  destination.on("error", () => {});
  return pino(
    {
      level,
      base: { pid: process.pid },
      timestamp: pino.stdTimeFunctions.isoTime,
      redact: [...paths, '*["x-api-key"]'],
    },
    { write: (line) => destination.write(secrets.mask(line)) },
  );
}
