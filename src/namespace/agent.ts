/** `agent/{aname}/`: one agent. */
import { Fault } from "../fault.ts";
import type { File, Maybe } from "../ninep/file.ts";
import type { LiveAgent, Stamp } from "../session/live.ts";
import type { Standing } from "./access.ts";
import type { Row } from "./files.ts";
import { fileOf, filesOf, type Named } from "./folder.ts";
import { prompt } from "./prompt.ts";
import { both, live, text } from "./reading.ts";
import { SiteFolder } from "./site-folder.ts";
import { idlewait, statewait } from "./wait.ts";
import { parseKeys, parseWords } from "./words.ts";
import { requests, verbs } from "./writing.ts";

const enqueue = requests<LiveAgent>(async (agent, item) => {
  if (item.trim() === "") throw new Fault("invalid", "empty prompt");
  await agent.enqueue(item);
});

const loadTools = requests<LiveAgent>(async (agent, names) => {
  const words = parseWords(names);
  if (words.length === 0) throw new Fault("invalid", "no tool named; NAME loads, -NAME unloads");
  await agent.changeTools(words);
});

const configure = requests<LiveAgent>(async (agent, words) => {
  const keys = parseKeys(words);
  if (keys.size === 0) throw new Fault("invalid", "no key=value given");
  await agent.configure(keys);
});

const ctl = verbs<LiveAgent>(
  (agent, line) => agent.checkCtl(line),
  (agent, line) => agent.ctl(line),
  ["stop", "kill"],
);

/** What tools may do with what there is to know of an agent. */
const known = { self: "r", own: "r", child: "r" } as const;
/** The same with what one has to know of an agent to ask it something. */
const told = { ...known, sharing: "r" } as const;
const asked = { self: "w", own: "w", child: "w", sharing: "w" } as const;

/** A prompt as it was written: its one newline, which is no part of it, stands at its end again. */
const written = (prompt: string | undefined) => (prompt ? `${prompt}\n` : "");
const jsonLines = (texts: string[]) => texts.map((one) => `${JSON.stringify(one)}\n`).join("");

export const agentRows: readonly Row<LiveAgent>[] = [
  { name: "prompt", mode: 0o200, tools: asked, changes: ["turn"], content: prompt },
  {
    name: "prompt.prev",
    mode: 0o444,
    tools: known,
    changes: ["turn"],
    content: text((a) => written(a.promptPrev())),
  },
  {
    name: "queue",
    mode: 0o644,
    tools: { self: "rw", own: "rw", child: "rw", sharing: "w" },
    changes: ["queue"],
    content: both(
      text((a) => jsonLines(a.queue().map((item) => item.text))),
      enqueue,
    ),
  },
  {
    name: "fifo.in",
    mode: 0o200,
    tools: { self: "w", own: "w", child: "w" },
    changes: ["queue"],
    content: enqueue,
  },
  {
    name: "fifo.out",
    mode: 0o444,
    tools: known,
    changes: ["queue"],
    content: text((a) => written(a.queue()[0]?.text)),
  },
  { name: "chat", mode: 0o444, tools: told, changes: ["chat"], content: live((a) => a.chat) },
  {
    name: "reply",
    mode: 0o444,
    tools: told,
    changes: ["turn"],
    content: text((a) => a.reply()),
    costly: true,
  },
  { name: "offset", mode: 0o444, tools: told, changes: ["turn"], content: text((a) => `${a.offset()}`) },
  { name: "state", mode: 0o444, tools: told, changes: ["state"], content: text((a) => a.state) },
  { name: "statewait", mode: 0o444, tools: told, changes: ["state"], content: statewait },
  { name: "idlewait", mode: 0o444, tools: told, changes: ["state"], content: idlewait },
  { name: "cost", mode: 0o444, tools: known, changes: "content", content: text((a) => a.cost()) },
  { name: "usage", mode: 0o444, tools: known, changes: ["usage"], content: text((a) => a.usage()) },
  {
    name: "ctxsz",
    mode: 0o444,
    tools: known,
    changes: "content",
    content: text((a, _, reading) => a.ctxsz(reading)),
  },
  {
    name: "context",
    mode: 0o444,
    tools: known,
    changes: ["turn", "chat"],
    content: text((a) => a.context()),
    costly: true,
  },
  {
    name: "systemprompt",
    mode: 0o444,
    tools: known,
    changes: "content",
    content: text((a) => a.systemPrompt()),
  },
  {
    name: "models",
    mode: 0o444,
    tools: known,
    changes: "content",
    content: text((a, _, reading) => a.models(reading)),
  },
  {
    name: "tools",
    mode: 0o644,
    tools: { ...known, self: "rw" },
    changes: ["tools"],
    content: both(
      text((a) => a.tools().join("\n")),
      loadTools,
    ),
  },
  {
    name: "cfg",
    mode: 0o644,
    tools: known,
    changes: ["cfg"],
    content: both(
      text((a) => a.cfg()),
      configure,
    ),
  },
  { name: "ctl", mode: 0o200, tools: { child: "w" }, changes: [], content: ctl },
  { name: "machine", mode: 0o444, tools: known, changes: "content", content: text((a) => a.machine()) },
  { name: "machine.mmd", mode: 0o444, tools: known, changes: "content", content: text((a) => a.mermaid()) },
  { name: "snapshot", mode: 0o444, tools: known, changes: "content", content: text((a) => a.snapshot()) },
  { name: "trace", mode: 0o444, tools: known, changes: "content", content: live((a) => a.trace) },
];

/** Numbers in the agent's block of qid paths: the folder, then its files. */
const folderPath = 0;
const firstFile = 1;

export class AgentFolder extends SiteFolder<LiveAgent> {
  get name(): string {
    return this.target.name;
  }

  protected get path(): number {
    return this.target.qid + folderPath;
  }

  get standing(): Standing | undefined {
    return this.context.view.of(this.target);
  }

  override alive(): void {
    super.alive();
    if (this.target.session.removed) throw new Fault("missing", "session removed");
    // `rm -r` of a session takes its agents first: which of the two is meant cannot be known yet.
    if (this.target.removed || !this.standing) throw new Fault("missing", "agent or session removed");
  }

  protected when(): Stamp {
    return this.stamp(["name"]);
  }

  /** The file of that name, as a child of `folder`. */
  file(name: string, folder: File = this): Named | undefined {
    return fileOf(agentRows, name, this, this.target.qid + firstFile, folder);
  }

  files(folder: File = this): Named[] {
    return filesOf(agentRows, this, this.target.qid + firstFile, folder);
  }

  protected child(name: string): File {
    const file = this.file(name);
    if (file) return file;
    throw new Fault("missing", `an agent has no file ${name}`);
  }

  protected children(): File[] {
    return this.files();
  }

  protected override rename(name: string): Maybe<void> {
    return this.target.rename(name);
  }
}
