import { Fault } from "../../fault.ts";
import type { Client, Fid } from "../../ninep/client.ts";
import { renderBlock } from "../../store/blocks.ts";
import { command } from "../program.ts";
import { readIn, writeOut } from "../stdio.ts";
import { type Block, BlockReader, plain } from "./blocks.ts";
import { type globals, withServer } from "./connection.ts";
import { forOutput } from "./visible.ts";

/** Milliseconds between looks at the chat. */
const pause = 100;

export const ask = command<Record<never, never>, typeof globals>({
  usage: "AGENT",
  about:
    "Sends stdin to the agent, a path such as session/NAME/agent/default, waits for the end of the turn that it begins, and prints the\n" +
    "reply of that turn, whoever else asks the same agent. It is a question, also where it begins like a verb.\n" +
    "Status 1 if the turn failed, was stopped or was interrupted.",
  options: {},
  words: [1, 1],
  run({ words, globals }) {
    const place = words[0]!;
    return withServer(globals, async (client, signal) => {
      const question = await readQuestion(signal);
      const turn = new AskedTurn(await client.openFile(`${place}/chat`, undefined, signal), question);
      await turn.skip(signal);
      // A second slash keeps a text from being a verb.
      await client.writeFile(`${place}/prompt`, question.startsWith("/") ? `/${question}` : question, signal);
      await over(turn, await client.openFile(`${place}/idlewait`, undefined, signal), signal);
      await writeOut(forOutput(await reply(turn, client, place, signal)));
      return 0;
    });
  },
});

async function readQuestion(signal: AbortSignal): Promise<string> {
  const all: Uint8Array[] = [];
  for (let chunk = await readIn(signal); chunk; chunk = await readIn(signal)) all.push(chunk);
  try {
    return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(Buffer.concat(all));
  } catch (cause) {
    throw new Fault("invalid", "the question is not UTF-8", { cause });
  }
}

/** The turn that a question begins, as the chat shows it: from the question's block to the next one that begins a turn. */
class AskedTurn {
  readonly #blocks = new BlockReader();
  readonly #asked: string;
  #offset = 0;
  #begun = false;
  /** What followed the question so far. */
  readonly answer: Block[] = [];
  /** Another turn has begun after it. */
  passed = false;

  constructor(
    private readonly chat: Fid,
    question: string,
  ) {
    // What the server makes of it: a newline at the end and what escapes a slash are no part of a prompt.
    const text = question.replace(/\n$/, "").replace(/^ \//, "/");
    this.#asked = new BlockReader().push(Buffer.from(renderBlock("user", {}, text)))[0]!.text;
  }

  get begun(): boolean {
    return this.#begun;
  }

  /** Leaves out what is there already, none of which can be the answer. */
  async skip(signal: AbortSignal): Promise<void> {
    const length = Number((await this.chat.stat(signal)).length);
    if (length === 0) return;
    // A text that grows may end within a line, whose rest must not be taken for the beginning of one.
    this.#offset = length;
    const last = await this.chat.read(length - 1, 1, signal);
    if (last.toString() !== "\n") this.#blocks.push(Buffer.from("…"));
  }

  /** Takes in what the chat has now. */
  async look(signal: AbortSignal): Promise<void> {
    for (;;) {
      const piece = await this.chat.read(this.#offset, undefined, signal);
      if (piece.length === 0) return;
      this.#offset += piece.length;
      for (const block of this.#blocks.push(piece)) this.#take(block);
    }
  }

  #take(block: Block): void {
    const begins = block.type === "user" && !block.injected;
    if (!this.#begun) this.#begun = begins && block.text === this.#asked;
    else if (begins) this.passed = true;
    else if (!this.passed) this.answer.push(block);
  }
}

/** Waits until the turn has ended: the agent is idle, or the next turn has begun. */
async function over(turn: AskedTurn, idlewait: Fid, signal: AbortSignal): Promise<void> {
  let idle = false;
  const wait = idlewait.read(0, undefined, signal).then(() => {
    idle = true;
  });
  while (!idle && !turn.passed) {
    await Promise.race([wait, Bun.sleep(pause)]);
    await turn.look(signal);
  }
  await turn.look(signal);
  if (!turn.begun)
    throw new Fault("interrupted", "the question was taken out of the queue before its turn came");
}

/** @throws Fault with how the turn ended, where it did not end well */
async function reply(turn: AskedTurn, client: Client, place: string, signal: AbortSignal): Promise<string> {
  const { answer } = turn;
  const said = (type: string) => answer.filter((block) => block.type === type).map(({ text }) => text.trim());
  const [error] = said("error");
  if (error !== undefined) throw new Fault("io", `the turn failed: ${error}`);
  const infos = said("info");
  if (infos.includes("Stopped by the user.")) throw new Fault("interrupted", "the turn was stopped");
  if (infos.some((text) => text.startsWith("Interrupted: ")))
    throw new Fault("interrupted", "the turn was interrupted");
  const last = turn.passed ? "" : await client.readText(`${place}/reply`, signal);
  await turn.look(signal);
  // Of a turn that is no longer the last one only the chat tells the reply.
  if (!turn.passed) return last;
  const texts = answer.filter(({ type }) => type === "assistant").map(({ text }) => plain(text));
  return texts.join("");
}
