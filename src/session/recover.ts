/**
 * What became of operations whose turn did not see their end: the server was killed, or the way to their host broke for good. Nothing is
 * run again. What still runs becomes a job; of what has ended chat tells the result, and so does the next request.
 */
import type { Logger } from "pino";
import type { RemoteJob } from "../remote/client/jobs.ts";
import type { Agent } from "./agent.ts";
import type { Session } from "./session.ts";

/** Characters of a result that are told. */
const shown = 8192;
/** Sessions that are at it. */
const busy = new WeakSet<Session>();

/** Does nothing where the host cannot be asked now. Never rejects. */
export async function recover(session: Session, log: Logger): Promise<void> {
  const remote = session.reach.opened;
  if (!remote?.ready || busy.has(session)) return;
  busy.add(session);
  try {
    for (const agent of session.agents())
      for (const op of pending(agent)) await account(agent, op, remote.jobs.get(op));
  } catch (error) {
    // It is tried again at the next occasion.
    if (!session.removed) log.error({ err: error, session: session.name }, "an operation is unaccounted for");
  } finally {
    busy.delete(session);
  }
}

/** Those that no running turn waits for. */
export function pending(agent: Agent): string[] {
  return [...agent.store.state.operations].flatMap(([op, call]) => (agent.busy && call !== "" ? [] : [op]));
}

async function account(agent: Agent, op: string, job: RemoteJob | undefined): Promise<void> {
  const { session, store } = agent;
  const { host } = session.reach.hands;
  const what = job ? `The call that was interrupted (${job.report.title})` : "A call that was interrupted";
  const end = job?.ending;
  // It was started as a job, only that the turn did not learn it.
  if (session.jobs.all().some(({ record }) => record.op === op)) {
    store.append({ t: "op", op });
    return;
  }
  if (job && !end) {
    const about = { agent: agent.name, tool: toolOf(job), command: job.report.title, notify: true };
    const { id } = await session.jobs.adopt(op, about);
    say(agent, `${what} still runs on ${host}: it is job ${id} of this session now.`);
  } else if (job && end) {
    const { report } = job;
    const result = report.outcome?.text ?? report.output ?? "";
    const how = report.outcome?.how ?? `${end.how}${end.detail === undefined ? "" : `: ${end.detail}`}`;
    say(agent, `${what} has ended on ${host} (${how}).${result && ` Its result:\n${cut(result)}`}`);
  } else {
    say(
      agent,
      `${what} is not known on ${host}: it has never begun there, or was forgotten. Nothing was run again.`,
    );
  }
  store.append({ t: "op", op });
  await store.sync();
}

/** To the user now, to the model with the next request. */
function say(agent: Agent, text: string): void {
  agent.store.append({ t: "note", text: `[This is a message from ollie.]\n${text}` });
  agent.inform({}, text);
}

function toolOf({ report }: RemoteJob): string {
  return /^[\w-]+/.exec(report.title)?.[0] ?? "call";
}

function cut(text: string): string {
  return text.length > shown ? `[…]\n${text.slice(-shown)}` : text;
}
