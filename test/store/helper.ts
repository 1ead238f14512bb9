import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Message } from "../../src/backends/backend.ts";
import { Secrets } from "../../src/config/secrets.ts";
import type { AgentState } from "../../src/store/agent-state.ts";
import { AgentStore, type NewAgent } from "../../src/store/agent-store.ts";
import { FdCache } from "../../src/store/fd-cache.ts";
import type { TextLog } from "../../src/store/text-log.ts";

/** A folder that is gone when the test process ends. */
export function folder(): string {
  const path = mkdtempSync(join(tmpdir(), "ollie-store-"));
  process.on("exit", () => rmSync(path, { recursive: true, force: true }));
  return path;
}

/** Agents in a folder of their own, without a session around them. */
export class Agents {
  readonly cache: FdCache;
  readonly secrets = new Secrets();

  constructor(
    readonly agentsFolder = folder(),
    cache = new FdCache(),
  ) {
    this.cache = cache;
  }

  renameAgent = () => Promise.reject(new Error("not here"));
  removeAgent = () => Promise.reject(new Error("not here"));

  async create(agent: Partial<NewAgent> = {}): Promise<AgentStore> {
    const wanted = { name: "default", config: "default", ...agent };
    const path = join(this.agentsFolder, wanted.name);
    mkdirSync(path);
    await AgentStore.fill(path, wanted, Date.now());
    return (await this.open(wanted.name)).agent;
  }

  /** The way a new server opens it. */
  async open(name = "default"): Promise<{ agent: AgentStore; report: string[] }> {
    const report: string[] = [];
    return { agent: await AgentStore.load(this, name, report), report };
  }
}

/** A state without where things stand in the file, for comparing journals whose bytes differ. */
export function meaning(state: Readonly<AgentState>): unknown {
  return JSON.parse(
    JSON.stringify(state, (key, value) => {
      if (["place", "from", "to", "historyFrom"].includes(key)) return undefined;
      return value instanceof Map || value instanceof Set ? [...value] : value;
    }),
  );
}

export function chatText(agent: { chat: TextLog }): string {
  return Buffer.from(agent.chat.read(0, agent.chat.length)).toString();
}

export interface ParsedBlock {
  type: string;
  attrs: Record<string, string>;
  text: string;
}

/** Reads a chat strictly: throws where a block is not closed, a marker is out of place or text stands outside blocks. */
export function parseChat(text: string): ParsedBlock[] {
  const blocks: ParsedBlock[] = [];
  let open: ParsedBlock | undefined;
  if (text !== "" && !text.endsWith("\n")) throw new Error("the last line has no newline");
  for (const line of text.split("\n").slice(0, -1)) {
    const marker = /^\[\[\[(\w+)((?: \w+=(?:"(?:\\.|[^"\\])*"|[^\s"\]]+))*)\]\]\]$/.exec(line);
    if (line.startsWith("[[[") && !marker) throw new Error(`a broken marker: ${line}`);
    if (!marker) {
      if (!open) throw new Error(`text outside of blocks: ${JSON.stringify(line)}`);
      open.text += `${line.startsWith(" [[[") ? line.slice(1) : line}\n`;
    } else if (marker[1] === "end") {
      if (!open) throw new Error("an end without a block");
      blocks.push(open);
      open = undefined;
    } else {
      if (open) throw new Error(`${line} inside a block`);
      open = { type: marker[1]!, attrs: parseAttrs(marker[2]!), text: "" };
    }
  }
  if (open) throw new Error("the last block is open");
  return blocks;
}

function parseAttrs(words: string): Record<string, string> {
  const attrs: Record<string, string> = {};
  for (const [, key, quoted, bare] of words.matchAll(/ (\w+)=(?:("(?:\\.|[^"\\])*")|([^\s"\]]+))/g))
    attrs[key!] = quoted ? JSON.parse(quoted) : bare!;
  return attrs;
}

/** Why a provider would refuse these messages, or undefined. */
export function invalidity(messages: Message[]): string | undefined {
  let due: string[] = [];
  if (messages[0] && messages[0].role !== "user") return "it does not begin with a user message";
  for (const message of messages) {
    if (message.role === "tool") {
      if (message.id !== due.shift()) return `a result of ${message.id} that is not due`;
      continue;
    }
    if (due.length > 0) return `no result of ${due[0]}`;
    if (message.role === "assistant") {
      due = message.calls.map((call) => call.id);
      if (new Set(due).size < due.length) return "two calls with one id";
      if (message.text === "" && due.length === 0) return "an empty answer";
    }
  }
  return due.length > 0 ? `no result of ${due[0]}` : undefined;
}
