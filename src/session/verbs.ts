/** The verbs of an agent's `ctl`, which slash lines in `prompt` share: `VERB`, or `VERB ARGUMENT…`. */
import { Fault } from "../fault.ts";
import type { Agent } from "./agent.ts";
import { saveTranscript } from "./transcript.ts";

interface Verb {
  /** How `help` shows it. */
  form: string;
  help: string;
  /** Returns the answer for who typed it. */
  run(agent: Agent, argument: string): Promise<string> | string;
}

/** A verb that sets one key of `cfg`, and shows it when nothing follows. */
function setting(verb: string, key: string, form: string, help: string): Verb {
  return {
    form: `${verb} ${form}`,
    help,
    async run(agent, argument) {
      if (argument) await agent.configure(new Map([[key, argument]]));
      return (
        agent
          .cfg()
          .split("\n")
          .find((line) => line.startsWith(`${key}=`)) ?? ""
      );
    },
  };
}

const verbs: Record<string, Verb> = {
  stop: {
    form: "stop",
    help: "end the running turn; what it has done stays",
    run(agent) {
      if (!agent.busy) return "Nothing is running.";
      agent.stop();
      return "Stopping.";
    },
  },
  kill: {
    form: "kill",
    help: "end and remove the agent",
    async run(agent) {
      await agent.remove();
      return "";
    },
  },
  rename: {
    form: "rename NAME",
    help: "give the agent another name (also rn)",
    async run(agent, argument) {
      await agent.rename(needed(argument, "rename NAME"));
      return `This agent is called ${agent.name} now.`;
    },
  },
  clear: {
    form: "clear",
    help: "begin a new history; chat and costs stay",
    async run(agent) {
      await agent.clear();
      return "";
    },
  },
  inject: {
    form: "inject TEXT",
    help: "give TEXT to the model within the running turn",
    async run(agent, argument) {
      await agent.inject(needed(argument, "inject TEXT"));
      return "";
    },
  },
  retry: {
    form: "retry",
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
    form: "dequeue [N]",
    help: "take the Nth waiting text (the first) out of the queue",
    async run(agent, argument) {
      if (argument && !/^[1-9]\d*$/.test(argument))
        throw new Fault("invalid", `dequeue ${argument}: a number from 1 up is right`);
      return `Taken out: ${await agent.dequeue(argument ? Number(argument) : 1)}`;
    },
  },
  save: {
    form: "save",
    help: "write the transcript to a Markdown file",
    run: (agent) => `Saved to ${saveTranscript(agent)}`,
  },
  backend: setting("backend", "backend", "[B]", "show or change the backend"),
  model: setting("model", "model", "[M]", "show or change the model"),
  agent: setting("agent", "agent", "[A]", "show or change the agent config"),
  cwd: setting("cwd", "cwd", "[D]", "show or change the working folder"),
  maxsteps: setting("maxsteps", "maxSteps", "[N]", "show or change how many steps a turn may take"),
};

const aliases: Record<string, string> = { rn: "rename", maxSteps: "maxsteps" };

/** Carries out one line; returns the answer. Rejects with a Fault, and then nothing has changed. */
export async function runAgentVerb(agent: Agent, line: string): Promise<string> {
  const [, word, argument] = /^\s*(\S*)\s*(.*?)\s*$/s.exec(line)!;
  if (word === "help") return helpText();
  const name = aliases[word!] ?? word!;
  const verb = Object.hasOwn(verbs, name) ? verbs[name] : undefined;
  if (!verb)
    throw new Fault("invalid", `unknown verb ${word || '""'}; there are ${Object.keys(verbs).join(" ")}`);
  if (argument && !verb.form.includes(" ")) throw new Fault("invalid", `${word} takes no argument`);
  return verb.run(agent, argument!);
}

function helpText(): string {
  return Object.values(verbs)
    .map(({ form, help }) => `/${form.padEnd(14)} ${help}`)
    .join("\n");
}

function needed(argument: string, form: string): string {
  if (!argument) throw new Fault("invalid", `${form}: something is missing`);
  return argument;
}
