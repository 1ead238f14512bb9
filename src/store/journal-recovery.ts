/** Opening a journal: folding what is there, and putting right what a crash or a damaged disk has left. */
import {
  closeSync,
  existsSync,
  fsyncSync,
  linkSync,
  openSync,
  renameSync,
  rmSync,
  statSync,
  writeSync,
} from "node:fs";
import { dirname } from "node:path";
import { Fault, toFault } from "../fault.ts";
import { newId } from "../ids.ts";
import { type AgentState, emptyState, fold } from "./agent-state.ts";
import { fileMode, syncFolder } from "./disk.ts";
import { Journal } from "./journal.ts";
import { type Place, type Reading, readLine } from "./journal-lines.ts";
import type { LogFile } from "./log-file.ts";
import { type JournalRecord, recordSchema } from "./records.ts";

const knownTypes = new Set<string>(recordSchema.options.map((option) => option.shape.t.value));

interface Folded {
  state: AgentState;
  /** Lines that hold more or less than one record. */
  damagedLines: number;
  /** Bytes of them that could not be read. */
  lost: number;
  /** Records of a known kind in an unknown shape. */
  strange: number;
  /** A last line without newline of which nothing can be read. */
  torn?: Place;
  /** The last line is readable but has no newline. */
  unended: boolean;
}

export interface Opened {
  journal: Journal;
  state: AgentState;
  /** What is lost for good, as a sentence for whoever reads the chat. */
  lost?: string;
  /** A last line was cut off: an unfinished write, or the rest of a journal that was cut. */
  torn: boolean;
}

/**
 * Opens a journal of any condition. A torn last line is cut off, a missing newline is added; with damage anywhere else the journal is
 * written anew from all records that can be read, and the old file kept as `journal.jsonl.damaged-TIME`. Adds a sentence for
 * each to `report`. Throws a Fault where another version of ollie wrote it, and where the disk cannot be read.
 */
export async function openJournal(file: LogFile, report: string[]): Promise<Opened> {
  if (!existsSync(file.path)) closeSync(openSync(file.path, "ax", fileMode));
  let folded = await foldFile(file);
  if (folded.torn) {
    file.truncate(folded.torn.at);
    report.push(`${file.path}: the last line, torn after ${folded.torn.bytes} bytes, is cut off`);
  }
  const torn = folded.torn !== undefined;
  const lost = lossOf(file, folded);
  if (folded.damagedLines > 0 || folded.state.id === "") folded = await mend(file, folded, report);
  if (folded.strange > 0)
    report.push(`${file.path}: ${folded.strange} records of an unknown shape are kept and ignored`);
  const journal = new Journal(file);
  if (folded.unended) {
    journal.owe("\n");
    report.push(`${file.path}: the last line had no newline and is kept`);
  }
  return { journal, state: folded.state, lost, torn };
}

function lossOf(file: LogFile, { state, lost }: Folded): string | undefined {
  if (file.length === 0)
    return "The journal of this agent was empty: the model remembers nothing of what is above, what waited is gone, and the agent has the settings of the config default.";
  const gap = lost > 0 && `${lost} bytes could not be read, and what they held the model does not remember`;
  const first =
    state.id === "" && "its first record was missing, and the agent counts as one of the config default";
  const all = [gap, first].filter(Boolean).join("; ");
  return all && `The journal of this agent was damaged: ${all}.`;
}

async function foldFile(file: LogFile): Promise<Folded> {
  const folded: Folded = { state: emptyState(), damagedLines: 0, lost: 0, strange: 0, unended: false };
  await file.lines(0, file.length, (line, place, ended) => {
    const reading = readLine(line);
    if (!ended && reading.pieces.length === 0) folded.torn = place;
    else takeLine(folded, reading, place, file);
    folded.unended = !ended && !folded.torn;
  });
  return folded;
}

function takeLine(folded: Folded, reading: Reading, place: Place, file: LogFile): void {
  if (reading.damaged) folded.damagedLines++;
  folded.lost += reading.lost;
  for (const { type, record } of reading.pieces)
    if (record) fold(folded.state, record, place);
    else if (type === "agent")
      throw new Fault(
        "invalid",
        `${file.path} was written by another version of ollie; this one leaves it alone`,
      );
    else if (knownTypes.has(type)) folded.strange++;
}

/** Writes the journal anew. Where the disk does not let it, what could be read still counts, and the damaged lines stay. */
async function mend(file: LogFile, folded: Folded, report: string[]): Promise<Folded> {
  const what = [
    folded.damagedLines > 0 &&
      `${folded.damagedLines} damaged lines (${folded.lost} bytes could not be read)`,
    folded.state.id === "" && "the first record was missing",
  ]
    .filter(Boolean)
    .join(", ");
  const first = folded.state.id === "" ? substitute(file.path) : undefined;
  try {
    const copy = await rewrite(file, first);
    report.push(
      `${file.path}: ${what}; written anew from the readable records${copy && `, the old file is ${copy}`}`,
    );
    return await foldFile(file);
  } catch (error) {
    if (first) fold(folded.state, first, { at: 0, bytes: 0 });
    report.push(`${file.path}: ${what}; it could not be written anew: ${toFault(error).message}`);
    return folded;
  }
}

/** Stands in for a first record that is lost, so that all that came after it can still be used. */
function substitute(path: string): JournalRecord {
  return { t: "agent", at: Math.floor(statSync(path).birthtimeMs), v: 1, id: newId(), config: "default" };
}

/** Returns where the old file is kept, or "" where it was empty. */
async function rewrite(file: LogFile, first: JournalRecord | undefined): Promise<string> {
  const { path } = file;
  const temporary = `${path}.new`;
  const fd = openSync(temporary, "w", fileMode);
  try {
    if (first) writeSync(fd, `${JSON.stringify(first)}\n`);
    await file.lines(0, file.length, (line) => {
      for (const { text } of readLine(line).pieces) writeAll(fd, `${text}\n`);
    });
    fsyncSync(fd);
    const copy = file.length > 0 ? `${path}.damaged-${new Date().toISOString()}` : "";
    if (copy) linkSync(path, copy);
    renameSync(temporary, path);
    file.measure();
    await syncFolder(dirname(path));
    return copy;
  } catch (error) {
    rmSync(temporary, { force: true });
    throw error;
  } finally {
    closeSync(fd);
  }
}

function writeAll(fd: number, text: string): void {
  const bytes = Buffer.from(text);
  for (let done = 0; done < bytes.length; ) done += writeSync(fd, bytes, done);
}
