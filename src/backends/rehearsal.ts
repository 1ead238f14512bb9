/**
 * The scenario that `script` plays when no scenario file is named: enough to see the whole loop work without a model, and to learn how to
 * get one. It never pretends to be one.
 */
import type { Message, ModelRequest } from "./backend.ts";
import type { Step } from "./scenario.ts";

const notice = "This is ollie's scripted rehearsal, not a model.";

export function rehearse(request: ModelRequest): Step[] {
  const results = newResults(request.messages);
  if (results.length > 0) return say(report(results));
  const last = request.messages.at(-1);
  const prompt = last?.role === "user" ? last.text : "";
  if (prompt.startsWith("$ ")) return runLines(prompt, request);
  const word = /\breply\s+["'“‘]?(\w+)["'”’]?\s+if\b/i.exec(prompt)?.[1];
  if (word)
    return say(`${word}\n\n(${notice} Nothing was looked at: it says the word that was asked for.)\n`);
  return say(howTo);
}

const howTo = `${notice} It answers where no other backend is configured. To talk to a model, put one of these into ~/.config/ollie/env and run \`olliesrv reload\`: OLLIE_BACKEND=ollama (with OLLIE_OLLAMA_URL=http://host:11434 if it is not on this machine), or OLLIE_BACKEND=openai with OLLIE_OPENAI_KEY=… and, for any compatible service, OLLIE_OPENAI_URL=…; OLLIE_MODEL names the model. Until then a prompt that begins with a dollar sign and a blank is run as a command, so that you can see an agent at work: try \`$ ls\`.
`;

/** One shell call for every line that begins with `$ `. */
function runLines(prompt: string, request: ModelRequest): Step[] {
  const commands = prompt
    .split("\n")
    .filter((line) => line.startsWith("$ "))
    .map((line) => line.slice(2).trim())
    .filter((command) => command !== "");
  if (commands.length === 0) return say(`${notice} There is no command after the dollar sign.\n`);
  if (!request.tools.some((tool) => tool.name === "shell"))
    return say(`${notice} It would run this with the tool \`shell\`, which this agent has not loaded.\n`);
  return [
    ...say(`${notice} It asks the shell.\n`),
    { calls: commands.map((command) => ({ name: "shell", args: { command } })) },
  ];
}

type Result = Extract<Message, { role: "tool" }>;

/** The results at the end of the conversation, if it ends with any. */
export function newResults(messages: Message[]): Result[] {
  const from = messages.findLastIndex((message) => message.role !== "tool") + 1;
  return messages.slice(from) as Result[];
}

function report(results: Result[]): string {
  const lines = results.map((result) => {
    const first = result.text.split("\n", 1)[0]!.trim();
    const shown = first.length > 60 ? `${first.slice(0, 60)}…` : first;
    return `- ${result.name} ${result.ok ? "answered" : "failed"}: ${shown === "" ? "(an empty line)" : shown}`;
  });
  const head = results.length === 1 ? "The result has come back" : `${results.length} results have come back`;
  return `${head}. A model would go on from here; the rehearsal only shows how each begins:\n${lines.join("\n")}\n`;
}

/** In pieces, as a model would write it. */
function say(text: string): Step[] {
  return [{ text, chunk: 16 }];
}
