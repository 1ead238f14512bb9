/**
 * A model server that does to a stream what real ones have done: raw TCP, one scenario a path, nothing between the test and the bytes.
 * The scenarios are in torture-openai.ts and torture-ollama.ts.
 *
 * ```ts
 * const torture = await startTorture();
 * const backend = new OpenAIBackend({ url: torture.url("utf8"), … });
 * torture.requests("utf8"); // what came in
 * await torture.close();
 * ```
 */
import { type AddressInfo, createServer, type Socket } from "node:net";
import { ollamaScenarios } from "./torture-ollama.ts";
import { openaiScenarios } from "./torture-openai.ts";
import type { Scenario, TortureRequest } from "./torture-wire.ts";

export interface Torture {
  /** The base URL of a scenario. */
  url(scenario: string): string;
  /** All requests of a scenario so far, or of all. */
  requests(scenario?: string): TortureRequest[];
  /** Connections that are open. */
  connections(): number;
  close(): Promise<void>;
}

export async function startTorture(): Promise<Torture> {
  const scenarios: Record<string, Scenario> = { ...openaiScenarios, ...ollamaScenarios };
  const requests: TortureRequest[] = [];
  const sockets = new Set<Socket>();
  const server = createServer((socket) => {
    sockets.add(socket);
    socket.on("close", () => sockets.delete(socket));
    // A client that goes away in the middle is part of the game.
    socket.on("error", () => {});
    socket.setNoDelay(true);
    let received = Buffer.alloc(0);
    socket.on("data", (data: Buffer) => {
      received = Buffer.concat([received, data]);
      const parsed = parseRequest(received);
      if (!parsed) return;
      received = Buffer.alloc(0);
      const same = (one: TortureRequest) => one.scenario === parsed.scenario && one.path === parsed.path;
      const request = { ...parsed, nth: requests.filter(same).length + 1 };
      requests.push(request);
      const play = scenarios[request.scenario];
      if (play) void Promise.resolve(play(socket, request)).catch(() => socket.destroy());
      else socket.end("HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\n\r\n");
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  return {
    url: (scenario) => `http://127.0.0.1:${port}/${scenario}`,
    requests: (scenario) => requests.filter((one) => scenario === undefined || one.scenario === scenario),
    connections: () => sockets.size,
    close: async () => {
      for (const socket of sockets) socket.destroy();
      await new Promise<void>((resolve) => server.close(() => resolve()));
    },
  };
}

/** Undefined until the request has come whole. */
function parseRequest(bytes: Buffer): Omit<TortureRequest, "nth"> | undefined {
  const end = bytes.indexOf("\r\n\r\n");
  if (end < 0) return undefined;
  const [first = "", ...fields] = bytes.subarray(0, end).toString().split("\r\n");
  const headers = new Headers(fields.map((field) => field.split(/: ?(.*)/s).slice(0, 2) as [string, string]));
  const body = bytes.subarray(end + 4);
  if (body.length < Number(headers.get("content-length") ?? 0)) return undefined;
  const [method = "", target = ""] = first.split(" ");
  const [, scenario = "", path = ""] = /^\/([^/]*)(.*)$/.exec(target) ?? [];
  return { scenario, method, path, headers, body: JSON.parse(body.toString() || "{}") };
}
