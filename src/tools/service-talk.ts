/**
 * What a TypeScript tool and its service say to each other: a connection for each request, on it a line of JSON each way. Who hangs up
 * before the answer has given the request up.
 */
import { once } from "node:events";
import { connect, createServer, type Socket } from "node:net";

type Answer = { result?: unknown } | { error: string };

/** @throws Error with the service's words, or that says why there are none */
export async function askService(socket: string, request: unknown): Promise<unknown> {
  const connection = connect(socket);
  let line: string;
  try {
    await once(connection, "connect");
    connection.write(`${JSON.stringify(request)}\n`);
    line = await firstLine(connection);
  } catch (error) {
    throw new Error(`the tool's service does not answer (${(error as Error).message})`, { cause: error });
  } finally {
    connection.destroy();
  }
  const answer = JSON.parse(line) as Answer;
  if ("error" in answer) throw new Error(answer.error);
  return answer.result;
}

/**
 * Listens, says on stdout that it does, and answers until the process is ended. What `answer` throws is told to who asked.
 * @param answer its signal is aborted when the request has been given up
 */
export async function serveRequests(
  socket: string,
  answer: (request: unknown, signal: AbortSignal) => Promise<unknown>,
): Promise<void> {
  const server = createServer(async (connection) => {
    const gone = new AbortController();
    connection.on("close", () => gone.abort());
    connection.on("error", () => gone.abort());
    try {
      const request = JSON.parse(await firstLine(connection));
      // Nothing more is expected, but an end that nobody reads is not noticed.
      connection.resume();
      const said: Answer = await answer(request, gone.signal).then(
        (result) => ({ result }),
        (error) => ({ error: error instanceof Error ? error.message : String(error) }),
      );
      connection.end(`${JSON.stringify(said)}\n`);
    } catch {
      connection.destroy(); // it went away, or is none of ours
    }
  });
  server.listen(socket);
  await once(server, "listening");
  process.stdout.write("ready\n");
}

/** @throws Error if the connection ends before the line does */
async function firstLine(connection: Socket): Promise<string> {
  const chunks: Buffer[] = [];
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  const take = (chunk: Buffer) => {
    chunks.push(chunk);
    if (chunk.includes(10)) resolve();
  };
  connection.on("data", take);
  connection.on("error", reject);
  connection.on("close", () => reject(new Error("it has ended")));
  try {
    await promise;
  } finally {
    connection.off("data", take);
  }
  const text = Buffer.concat(chunks).toString("utf8");
  return text.slice(0, text.indexOf("\n"));
}
