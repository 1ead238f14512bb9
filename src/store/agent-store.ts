/** What survives of one agent: its journal, its chat, and the state that the journal adds up to. */
import { closeSync, existsSync, openSync } from "node:fs";
import { join } from "node:path";
import type { Message } from "../backends/backend.ts";
import type { Secrets } from "../config/secrets.ts";
import { Fault } from "../fault.ts";
import { newId } from "../ids.ts";
import { type AgentState, fold } from "./agent-state.ts";
import { ChatLog, userBlock } from "./chat.ts";
import { beginsIn, endsIn, repairOf } from "./chat-repair.ts";
import { fileMode, writeDurably } from "./disk.ts";
import type { FdCache } from "./fd-cache.ts";
import { HistoryBuilder } from "./history.ts";
import type { Journal } from "./journal.ts";
import type { Place } from "./journal-lines.ts";
import { openJournal } from "./journal-recovery.ts";
import { LogFile } from "./log-file.ts";
import { maskedMessage, maskedRecord } from "./masking.ts";
import type { JournalRecord, NewRecord } from "./records.ts";

export interface NewAgent {
  name: string;
  /** Name of the agent config. */
  config: string;
  /** Settings that differ from the config's. */
  cfg?: Record<string, string | null>;
}

/** What an agent needs of its session. */
export interface AgentOwner {
  readonly agentsFolder: string;
  readonly cache: FdCache;
  /** What neither the journal nor chat may hold. */
  readonly secrets: Secrets;
  renameAgent(agent: AgentStore, name: string): Promise<void>;
  removeAgent(agent: AgentStore): Promise<void>;
}

const journalFile = "journal.jsonl";
const chatFile = "chat";
const lostEnd =
  "The end of this agent's journal was lost: the model does not remember the end of what is above.";
const interruption = "the server ended while this turn ran";

/** Where the agent's files are, under whatever name it has. */
class AgentFolder {
  constructor(
    readonly owner: AgentOwner,
    public name: string,
  ) {}

  get path(): string {
    return join(this.owner.agentsFolder, this.name);
  }

  file(name: string): LogFile {
    return new LogFile(() => join(this.path, name), this.owner.cache);
  }
}

export class AgentStore {
  readonly #folder: AgentFolder;
  readonly #journal: Journal;
  readonly #state: AgentState;
  readonly chat: ChatLog;

  private constructor(folder: AgentFolder, journal: Journal, state: AgentState, chat: ChatLog) {
    this.#folder = folder;
    this.#journal = journal;
    this.#state = state;
    this.chat = chat;
  }

  /** Fills an empty folder with a new agent's files, on disk when it resolves. `created` is in milliseconds since 1970. */
  static async fill(folder: string, { config, cfg = {} }: NewAgent, created: number): Promise<void> {
    const records: JournalRecord[] = [{ t: "agent", at: created, v: 1, id: newId(), config }];
    if (Object.keys(cfg).length > 0) records.push({ t: "cfg", at: created, set: cfg });
    closeSync(openSync(join(folder, chatFile), "ax", fileMode));
    await writeDurably(
      join(folder, journalFile),
      records.map((record) => `${JSON.stringify(record)}\n`).join(""),
    );
  }

  /**
   * Opens an agent in whatever condition a crash has left it, adding to `report` a sentence for each thing that was put right. A turn
   * that was running has ended as "interrupted" then, and chat says so; calls of it that have no result are completed by `history`.
   * What is lost for good is told in chat, and in `damage`.
   */
  static async load(
    owner: AgentOwner,
    name: string,
    report: string[],
    damage: string[] = [],
  ): Promise<AgentStore> {
    const folder = new AgentFolder(owner, name);
    const { journal, state, lost, torn } = await openJournal(folder.file(journalFile), report);
    const agent = new AgentStore(folder, journal, state, new ChatLog(folder.file(chatFile), owner.secrets));
    agent.#repairChat(report);
    agent.#closeInterrupted(report);
    const sentence = lost || (torn && agent.#chatKnowsMore() && lostEnd);
    if (sentence) {
      agent.chat.block("info", {}, sentence);
      damage.push(`${agent.folder}: ${sentence}`);
    }
    return agent;
  }

  get name(): string {
    return this.#folder.name;
  }

  /** Absolute path. */
  get folder(): string {
    return this.#folder.path;
  }

  /** What is secret in the agent's session. */
  get secrets(): Secrets {
    return this.#folder.owner.secrets;
  }

  /** Messages as a provider may get them. */
  masked(messages: readonly Message[]): Message[] {
    return messages.map((message) => maskedMessage(message, this.secrets));
  }

  /** The fold of the journal. It changes in place with every `append`; nobody else writes it. */
  get state(): Readonly<AgentState> {
    return this.#state;
  }

  /**
   * Adds a record, its secrets masked, to the journal (a plain write; see `sync`) and to `state`. Throws a Fault where the disk refuses (kind "full" on a
   * full disk), and then neither has changed.
   */
  append(record: NewRecord & { at?: number }): void {
    const { record: stamped, place } = this.#journal.append(maskedRecord(record, this.secrets));
    fold(this.#state, stamped, place);
  }

  /**
   * Like `append`, for what has happened whatever the disk says to it: what it refuses is kept and written before the next record.
   * Returns why it is not written yet.
   */
  appendOrOwe(record: NewRecord): Fault | undefined {
    const { record: stamped, place, fault } = this.#journal.appendOrOwe(maskedRecord(record, this.secrets));
    fold(this.#state, stamped, place);
    return fault;
  }

  /**
   * Begins a turn with a text that waits: journalled first, then shown in chat. Throws a Fault, and then nothing has changed, where the
   * disk refuses the record or still owes chat something, since `offset` could not be foretold.
   */
  beginTurn(turn: string, prompt: string): void {
    const held = this.#state.waiting.find(({ id }) => id === prompt);
    if (!held) throw new Fault("missing", `no text with the id ${prompt} waits`);
    this.chat.flush();
    this.chat.closeAll();
    this.chat.flush();
    const at = Date.now();
    const block = turnBlock(held.text, at);
    const chatAt = this.chat.length;
    this.append({ t: "turn", at, id: turn, prompt, chatAt, offset: chatAt + block.length });
    this.chat.raw(block);
  }

  /** Everything appended to the journal and written to chat is on disk when this resolves. Concurrent callers share one fdatasync. */
  async sync(): Promise<void> {
    await Promise.all([this.#journal.file.sync(), this.chat.sync()]);
  }

  /** The conversation since the last `clear`, always valid for a model; see `HistoryBuilder`. Reads the disk. */
  async history(): Promise<Message[]> {
    const builder = new HistoryBuilder();
    await this.#journal.records(this.#state.historyFrom, this.#journal.length, (record) =>
      builder.add(record),
    );
    return builder.finish();
  }

  /** The assistant's texts of the last turn that ended, however it did, joined by newlines. Reads the disk. */
  async reply(): Promise<string> {
    const { last } = this.#state;
    if (!last) return "";
    const texts: string[] = [];
    let inside = false;
    await this.#journal.records(last.from, last.to, (record) => {
      if (record.t === "turn") inside = record.id === last.id;
      if (inside && record.t === "assistant" && record.text !== "") texts.push(record.text);
    });
    return texts.join("\n");
  }

  /** Whether a text with that id was ever accepted. Reads the whole journal. */
  async wasAccepted(id: string): Promise<boolean> {
    let found = false;
    await this.#journal.records(0, this.#journal.length, (record) => {
      if (record.t === "prompt" && record.id === id) found = true;
    });
    return found;
  }

  /** The text that the running or last turn began with. Reads the disk. */
  prevPrompt(): string {
    const { prevPrompt } = this.#state;
    return prevPrompt ? this.#promptText(prevPrompt.id, prevPrompt.place) : "";
  }

  /** Open files and journal positions stay valid. Throws a Fault of kind "exists" where the session has an agent of that name. */
  renameTo(name: string): Promise<void> {
    return this.#folder.owner.renameAgent(this, name);
  }

  /** Ends the agent for good. It is gone at once, also after a crash; its files are deleted later. */
  remove(): Promise<void> {
    return this.#folder.owner.removeAgent(this);
  }

  /** For the session alone: the folder has a new name. */
  renamed(name: string): void {
    this.#folder.name = name;
  }

  /** For the session alone: the folder is gone. */
  retire(): void {
    this.#journal.file.retire();
    this.chat.file.retire();
  }

  #promptText(id: string, place: Place): string {
    for (const record of this.#journal.at(place))
      if (record.t === "prompt" && record.id === id) return record.text;
    return "";
  }

  #repairChat(report: string[]): void {
    const { file } = this.chat;
    if (!existsSync(file.path)) closeSync(openSync(file.path, "ax", fileMode));
    const turn = this.#state.running ?? this.#state.last;
    const bytes = () => turnBlock(this.prevPrompt(), turn!.at);
    const repair = repairOf(file, turn && { chatAt: turn.chatAt, offset: turn.offset, bytes });
    report.push(...repair.report);
    if (repair.patch.length > 0) this.chat.raw(repair.patch);
  }

  /** Chat shows a turn that is not in the journal. */
  #chatKnowsMore(): boolean {
    const { running, last } = this.#state;
    return beginsIn("user", this.chat.file, (running ?? last)?.offset ?? 0);
  }

  #closeInterrupted(report: string[]): void {
    const { running } = this.#state;
    if (!running) return;
    // Its last word is in chat; it was the record of it that the disk did not take.
    if (endsIn("error", this.chat.file, running.offset)) {
      this.appendOrOwe({ t: "end", turn: running.id, how: "failed", reason: "chat tells why" });
      report.push(`${this.folder}: the turn that had failed when the last server ended is closed as failed`);
      return;
    }
    this.chat.block("info", {}, `Interrupted: ${interruption}.`);
    this.appendOrOwe({ t: "end", turn: running.id, how: "interrupted", reason: interruption });
    report.push(`${this.folder}: the turn that ran at the end of the last server is closed as interrupted`);
  }
}

/** The user block of a turn; the same bytes at every call, since recovery writes again what a crash has kept from chat. */
function turnBlock(text: string, at: number): Uint8Array {
  return userBlock(text, { time: new Date(at).toISOString() });
}
