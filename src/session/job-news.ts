/**
 * Telling the agent that started a job how it has ended: by a prompt where it asked for that, else in its chat. Where that agent has been
 * removed, the chat of the session's first agent says so.
 *
 * Exactly once, also over a crash: `told` in the job's folder says that it has been done. A crash between the two leaves what was told
 * without the mark, so a server that finds a job ended looks first whether the agent has the message.
 */
import { Cleaner } from "../exec/clean.ts";
import type { Agent } from "./agent.ts";
import type { Job } from "./job.ts";
import type { Session } from "./session.ts";

/** Bytes of the end of the output that the message has. */
const shown = 2048;
/** Characters of the command that it has. */
const shownCommand = 300;
/** Milliseconds from TERM to KILL for what a lost job may have left. */
const grace = 500;
/** Bytes of a chat that are looked through at once. */
const chunk = 1 << 20;

/** @param found it had ended before this server began */
export async function tellEnd(
  session: Session,
  job: Job,
  found: boolean,
  remarks: readonly string[],
): Promise<void> {
  const { jobs } = session.store;
  if (jobs.wasTold(job.id)) return;
  const sentences = [...remarks, ...(job.ending ? [] : await endWhatIsLeft(job))];
  const text = session.store.secrets.mask(message(job, sentences));
  const agents = session.agents();
  const starter = agents.find((agent) => agent.store.state.id === job.record.agent);
  if (starter && job.record.notify) {
    const id = `job-${job.id}`;
    if (!found || !(await starter.store.wasAccepted(id)))
      await starter.submit(`[This is a message from ollie.]\n${text}`, id);
  } else {
    const reader = starter ?? agents[0];
    const from = starter ? job.record.chat : 0;
    if (reader && !(found && hasBlock(reader, job.id, from))) reader.inform({ job: job.id }, text);
  }
  jobs.markTold(job.id);
}

async function endWhatIsLeft(job: Job): Promise<string[]> {
  if (!job.record.supervisor) return [];
  const left = await job.run.end(grace);
  return [
    left ? `These of its processes could not be ended: ${left}.` : "All of its processes have been ended.",
  ];
}

function message(job: Job, remarks: readonly string[]): string {
  const { ending, id, session } = job;
  const lines = [`Job ${id} ${howItEnded(job)} It was: ${shortened(job.cmd())}`];
  if (ending?.leftovers) lines.push(`What it had left running: ${ending.leftovers}.`);
  if (ending?.lost)
    lines.push(`The disk did not take ${ending.lost.toLocaleString("en")} bytes of its output.`);
  return [...lines, ...remarks, `Its output is in session/${session.name}/job/${id}/out${tail(job)}`].join(
    "\n",
  );
}

function shortened(command: string): string {
  return command.length > shownCommand ? `${command.slice(0, shownCommand)}…` : command;
}

function howItEnded({ ending, record }: Job): string {
  if (!ending && !record.supervisor)
    return "is lost: its host knows nothing of it any more, and nobody knows how it ended.";
  if (!ending)
    return "is lost: its supervisor was killed or the machine was started anew, and nobody knows how it ended.";
  const how = ending.signal ? `was ended by ${ending.signal}` : `has ended with exit status ${ending.code}`;
  const seconds = ((ending.at - record.started) / 1000).toFixed(1);
  return `${how} at ${new Date(ending.at).toISOString()}, after ${seconds} s.`;
}

/** Where it does not begin with the output, its first line would be a part of one and is left out. */
function tail({ out }: Job): string {
  const from = Math.max(0, out.length - shown);
  const raw = new TextDecoder().decode(out.read(from, shown));
  const cleaner = new Cleaner();
  const text = cleaner.push(from > 0 ? raw.slice(raw.indexOf("\n") + 1) : raw) + cleaner.end();
  if (out.length === 0) return "; it is empty.";
  return text.trim() === "" ? "." : `; ${from > 0 ? "its end" : "all of it"}:\n${text}`;
}

/** Whether the chat has the block about the end of the job. */
function hasBlock({ chat }: Agent, id: string, from: number): boolean {
  const wanted = Buffer.from(`[[[info job=${id} `);
  for (let at = from; at < chat.length; at += chunk)
    if (Buffer.from(chat.read(at, chunk + wanted.length)).includes(wanted)) return true;
  return false;
}
