/** `save`: the chat of an agent as a Markdown file. */
import { closeSync, mkdirSync, openSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { toFault } from "../fault.ts";
import type { Agent } from "./agent.ts";

const chunk = 1 << 20;

/** Writes the transcript and returns its path. A file appears whole or not at all. */
export function saveTranscript(agent: Agent): string {
  const time = new Date().toISOString().replace(/[:.]/g, "-");
  const path = join(agent.transcripts, `${agent.session.name}-${agent.name}-${time}.md`);
  const part = `${path}.part`;
  try {
    mkdirSync(agent.transcripts, { recursive: true, mode: 0o700 });
    write(agent, part);
    renameSync(part, path);
  } catch (error) {
    throw toFault(error, "the transcript could not be written");
  }
  return path;
}

function write(agent: Agent, path: string): void {
  const fd = openSync(path, "w", 0o600);
  try {
    writeFileSync(fd, `# ${agent.session.name}/${agent.name}\n\n`);
    const decoder = new TextDecoder();
    let rest = "";
    for (let at = 0; at < agent.chat.length; ) {
      const bytes = agent.chat.read(at, chunk);
      at += bytes.length;
      const lines = (rest + decoder.decode(bytes, { stream: true })).split("\n");
      rest = lines.pop()!;
      writeFileSync(fd, lines.map((line) => `${markdown(line)}\n`).join(""));
    }
    // Of a turn that runs the last line has only begun.
    if (rest) writeFileSync(fd, `${markdown(rest)}\n`);
  } catch (error) {
    rmSync(path);
    throw error;
  } finally {
    closeSync(fd);
  }
}

/** A block's marker becomes a heading, its end an empty line. */
function markdown(line: string): string {
  const open = /^\[\[\[(\w+)(?: (.*))?\]\]\]$/.exec(line);
  if (!open) return line.startsWith(" [[[") ? line.slice(1) : line;
  if (open[1] === "end") return "";
  return `## ${open[1]}${open[2] ? ` · ${open[2]}` : ""}\n`;
}
