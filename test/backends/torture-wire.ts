/** What scenarios are made of. */
import type { Socket } from "node:net";

/** A message of either wire, as far as tests look at it. */
export interface WireMessage {
  role: string;
  content: unknown;
  tool_calls?: { id?: string; function: { name: string; arguments: unknown } }[];
  [field: string]: unknown;
}

export interface WireBody {
  model: string;
  messages: WireMessage[];
  [field: string]: unknown;
}

export interface TortureRequest {
  scenario: string;
  method: string;
  /** Below the scenario: `/v1/chat/completions`. */
  path: string;
  headers: Headers;
  /** The parsed body; empty where there is none. */
  body: WireBody;
  /** Which request to this path of the scenario it is, from 1. */
  nth: number;
}

/** Writes the whole answer, status line included, and ends the connection as it likes. */
export type Scenario = (socket: Socket, request: TortureRequest) => void | Promise<void>;

/** Head of an answer of unknown length: it ends with the connection. */
export function head(type: string, status = "200 OK", fields: Record<string, string> = {}): string {
  const lines = Object.entries({ "content-type": type, connection: "close", ...fields });
  return `HTTP/1.1 ${status}\r\n${lines.map(([key, value]) => `${key}: ${value}\r\n`).join("")}\r\n`;
}

/** A whole answer. */
export function whole(
  type: string,
  body: string,
  status = "200 OK",
  fields: Record<string, string> = {},
): string {
  return head(type, status, { ...fields, "content-length": String(Buffer.byteLength(body)) }) + body;
}

export const json = (body: unknown, status?: string, fields?: Record<string, string>): string =>
  whole("application/json", JSON.stringify(body), status, fields);

/** Writes in pieces of `size` bytes, each in a TCP segment of its own. */
export async function drip(socket: Socket, text: string, size: number): Promise<void> {
  const bytes = Buffer.from(text);
  for (let i = 0; i < bytes.length; i += size) {
    socket.write(bytes.subarray(i, i + size));
    await Bun.sleep(0);
  }
}
