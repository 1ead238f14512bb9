/** Chat and prompt on one terminal: what the agent says appears above the line that is being typed. */
import { defaultState } from "../../config/paths.ts";
import { toFault } from "../../fault.ts";
import { writeAll } from "../../ninep/client/content.ts";
import type { Fid } from "../../ninep/client.ts";
import { OREAD, OWRITE } from "../../ninep/file.ts";
import { colours } from "../stdio.ts";
import { ChatPrinter } from "./chat-printer.ts";
import { Editor } from "./editor.ts";
import { History } from "./history.ts";
import { Interrupted, isVerb, readBlock } from "./lines.ts";
import { terminalStyle } from "./markers.ts";

/** Milliseconds between looks at the chat. */
const pause = 100;

/**
 * Takes prompts until `/quit` or the end of the input.
 * @param agent its folder; a fid, so that it is found again when it is renamed
 */
export async function converse(agent: Fid, title: string): Promise<void> {
  const editor = new Editor(new History(`${defaultState(process.env)}/history`));
  const chat = await (await agent.walk(["chat"])).open(OREAD);
  const printer = new ChatPrinter(chat, (text) => editor.above(text), colours() ? terminalStyle : undefined);
  await printer.skip();
  editor.above("A line with a single dot sends, /help lists the verbs, /quit leaves.\n");
  let over = false;
  const follow = async () => {
    for (; !over; await Bun.sleep(pause)) await printer.print();
  };
  try {
    await Promise.race([takePrompts(agent, title, editor, printer), follow()]);
  } finally {
    over = true;
    editor.close();
  }
}

async function takePrompts(agent: Fid, title: string, editor: Editor, printer: ChatPrinter): Promise<void> {
  for (;;) {
    try {
      const text = await readBlock(editor, `${title}> `);
      if (text === undefined || text === "/quit") return;
      await send(agent, text, printer);
    } catch (error) {
      if (error instanceof Interrupted) editor.above("(/quit leaves, /stop stops the agent)\n");
      else editor.above(`ollie: ${toFault(error).message}\n`);
    }
  }
}

async function send(agent: Fid, text: string, printer: ChatPrinter): Promise<void> {
  const own = !isVerb(text);
  if (own) printer.expectOwn(1);
  const prompt = await agent.walk(["prompt"]);
  try {
    await prompt.open(OWRITE);
    await writeAll(prompt, Buffer.from(`${text}\n`));
  } catch (error) {
    if (own) printer.expectOwn(-1);
    await prompt.clunk().catch(() => {});
    throw error;
  }
  await prompt.clunk();
}
