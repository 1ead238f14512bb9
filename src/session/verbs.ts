/** The verbs of an agent's `ctl`, which slash lines in `prompt` share: `VERB`, or `VERB ARGUMENT…`. */
import { Fault } from "../fault.ts";
import type { Agent } from "./agent.ts";
import { saveTranscript } from "./transcript.ts";

interface Verb {
  /** What follows it, as `help` shows it; in brackets where it may be left out. Absent: nothing may follow. */
  takes?: string;
  /** The argument is a text, of which only the one blank before it is not part. */
  text?: true;
  /** Without an argument it only answers, which `ctl` cannot. */
  asks?: true;
  help: string;
  /** Refuses an argument that is wrong whatever the agent is doing. */
  check?(argument: string): void;
  /** Returns the answer for who typed it. */
  run(agent: Agent, argument: string): Promise<string> | string;
}

/** A verb that sets one key of `cfg`, and shows it when nothing follows. */
function setting(key: string, takes: string, help: string): Verb {
  return {
    takes,
    asks: true,
    help,
    async run(agent, argument) {
      if (argument) await agent.configure(new Map([[key, argument]]));
      const lines = agent.cfg().split("\n");
      return lines.find((line) => line.startsWith(`${key}=`)) ?? "";
    },
  };
}

const verbs: Record<string, Verb> = {
  stop: {
    help: "end the running turn; what it has done stays",
    run(agent) {
      if (!agent.busy) return "Nothing is running.";
      agent.stop();
      return "Stopping.";
    },
  },
  kill: {
    help: "end and remove the agent",
    async run(agent) {
      await agent.remove();
      return "";
    },
  },
  rename: {
    takes: "NAME",
    help: "give the agent another name (also rn)",
    async run(agent, argument) {
      await agent.rename(argument);
      return `This agent is called ${agent.name} now.`;
    },
  },
  clear: {
    help: "begin a new history; chat and costs stay",
    async run(agent) {
      await agent.clear();
      return "";
    },
  },
  inject: {
    takes: "TEXT",
    text: true,
    help: "give TEXT to the model within the running turn",
    async run(agent, argument) {
      await agent.inject(argument);
      return "";
    },
  },
  retry: {
    help: "send the last prompt again",
    async run(agent) {
      agent.refuseWhileBusy("retry");
      const last = agent.promptPrev();
      if (!last) throw new Fault("invalid", "retry: there was no prompt yet");
      await agent.submit(last);
      return "";
    },
  },
  dequeue: {
    takes: "[N]",
    help: "take the Nth waiting text (the first) out of the queue",
    check(argument) {
      if (argument && !/^[1-9]\d*$/.test(argument))
        throw new Fault("invalid", `dequeue ${argument}: a number from 1 up is right`);
    },
    async run(agent, argument) {
      return `Taken out: ${await agent.dequeue(argument ? Number(argument) : 1)}`;
    },
  },
  save: {
    help: "write the transcript to a Markdown file",
    run: (agent) => `Saved to ${saveTranscript(agent)}`,
  },
  backend: setting("backend", "[B]", "show or change the backend"),
  model: setting("model", "[M]", "show or change the model"),
  agent: setting("agent", "[A]", "show or change the agent config"),
  cwd: setting("cwd", "[D]", "show or change the working folder"),
  maxsteps: setting("maxSteps", "[N]", "show or change how many steps a turn may take"),
  help: { asks: true, help: "show this list", run: helpText },
};

const aliases: Record<string, string> = { rn: "rename", maxSteps: "maxsteps" };

/** Throws a Fault where `ctl` can never carry out the line. */
export function checkAgentVerb(line: string): void {
  const { word, verb, argument } = parse(line);
  if (!verb.asks || argument) return;
  throw new Fault("invalid", `${word} alone asks, and ctl has no answer: write /${word} to prompt`);
}

/** Carries out one line; returns the answer. Rejects with a Fault, and then nothing has changed. */
export async function runAgentVerb(agent: Agent, line: string): Promise<string> {
  const { verb, argument } = parse(line);
  return verb.run(agent, argument);
}

function parse(line: string): { word: string; verb: Verb; argument: string } {
  const [, word = "", rest = ""] = /^\s*(\S*)(.*)$/s.exec(line)!;
  const name = aliases[word] ?? word;
  const verb = Object.hasOwn(verbs, name) ? verbs[name] : undefined;
  if (!verb)
    throw new Fault("invalid", `unknown verb ${word || '""'}; there are ${Object.keys(verbs).join(" ")}`);
  const argument = verb.text && rest.trim() !== "" ? rest.slice(1) : rest.trim();
  if (argument && !verb.takes) throw new Fault("invalid", `${word} takes no argument`);
  if (!argument && /^[^[]/.test(verb.takes ?? ""))
    throw new Fault("invalid", `${name} ${verb.takes}: ${verb.takes} is missing`);
  verb.check?.(argument);
  return { word, verb, argument };
}

function helpText(): string {
  return Object.entries(verbs)
    .map(([name, { takes = "", help }]) => `/${`${name} ${takes}`.padEnd(14)} ${help}`)
    .join("\n");
}
