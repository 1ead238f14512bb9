/** The connection of one `ollie-9p` command. */
import { readEnvironment } from "../../config/environment.ts";
import type { Client } from "../../ninep/client.ts";
import { clientAddress, dial } from "../../ninep/dial.ts";
import { NineError } from "../../ninep/errors.ts";
import type { Options, Values } from "../program.ts";

export const globals = {
  addr: { type: "string", short: "a", value: "ADDR", help: "the server: unix!PATH, tcp!HOST!PORT …" },
} as const satisfies Options;
export type Globals = Values<typeof globals>;

/** Milliseconds that the server gets to let go of a request before an interrupted command leaves anyway. */
const patience = 500;

/**
 * Runs `work` on a connection. Ctrl-C aborts `signal`: the request that is under way is flushed, nothing is clunked (a half-written
 * prompt must not be taken for a whole one), and the status is 130.
 */
export async function withServer(
  { addr }: Globals,
  work: (client: Client, signal: AbortSignal) => Promise<number | undefined>,
): Promise<number | undefined> {
  const interrupt = new AbortController();
  const { signal } = interrupt;
  process.on("SIGINT", () => interrupt.abort());
  const gaveUp = new Promise<number>((resolve) => {
    signal.addEventListener("abort", () => setTimeout(resolve, patience, 130));
  });
  const client = await dial(addr ?? serverAddress(process.env));
  try {
    return await Promise.race([work(client, signal), gaveUp]);
  } catch (error) {
    if (signal.aborted) return 130;
    throw await uncut(client, error);
  } finally {
    client.close();
  }
}

/**
 * An error of the server has 128 bytes at most. One that was cut to that is given all its words, where the server keeps them: olliesrv
 * does, in `lasterr`, a line `TIME PATH: WORDS`, which by now may be about another request.
 */
async function uncut(client: Client, error: unknown): Promise<unknown> {
  if (!(error instanceof NineError) || !error.message.endsWith("…")) return error;
  const start = error.message.slice(0, -1);
  const line = await client.readText("lasterr", AbortSignal.timeout(patience)).catch(() => "");
  const at = line.indexOf(`: ${start.replaceAll("\n", " ")}`);
  return at < 0 ? error : new Error(line.slice(at + 2).trimEnd(), { cause: error });
}

/** `OLLIE_ADDR` of the environment or the env file, else the default address. */
export function serverAddress(environment: NodeJS.ProcessEnv): string {
  return clientAddress(environment.OLLIE_ADDR ? environment : withEnvFile(environment), process.getuid!());
}

/** A broken env file is the server's to complain about: whoever looks for the reason may need this very command. */
function withEnvFile(environment: NodeJS.ProcessEnv): NodeJS.ProcessEnv {
  try {
    return readEnvironment(environment);
  } catch {
    return environment;
  }
}
