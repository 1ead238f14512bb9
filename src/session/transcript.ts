/** `save`: the chat of an agent as a Markdown file. */
import { closeSync, mkdirSync, openSync, renameSync, writeSync } from "node:fs";
import { join } from "node:path";
import type { Agent } from "./agent.ts";

const chunk = 1 << 20;

/** Writes the transcript and returns its path. A file appears whole or not at all. */
export function saveTranscript(agent: Agent): string {
  mkdirSync(agent.transcripts, { recursive: true, mode: 0o700 });
  const time = new Date().toISOString().replace(/[:.]/g, "-");
  const path = join(agent.transcripts, `${agent.session.name}-${agent.name}-${time}.md`);
  const fd = openSync(`${path}.part`, "wx", 0o600);
  try {
    writeSync(fd, `# ${agent.session.name}/${agent.name}\n\n`);
    const decoder = new TextDecoder();
    let rest = "";
    for (let at = 0; at < agent.chat.length; ) {
      const bytes = agent.chat.read(at, chunk);
      if (bytes.length === 0) break;
      at += bytes.length;
      const lines = (rest + decoder.decode(bytes, { stream: true })).split("\n");
      rest = lines.pop()!;
      for (const line of lines) writeSync(fd, `${markdown(line)}\n`);
    }
  } finally {
    closeSync(fd);
  }
  renameSync(`${path}.part`, path);
  return path;
}

/** A block's marker becomes a heading, its end an empty line; calls and outputs become code. */
function markdown(line: string): string {
  const open = /^\[\[\[(\w+)(?: (.*))?\]\]\]$/.exec(line);
  if (!open) return line.startsWith(" [[[") ? line.slice(1) : line;
  if (open[1] === "end") return "";
  return `## ${open[1]}${open[2] ? ` · ${open[2]}` : ""}\n`;
}
