/** `statewait`, `idlewait` and `remotewait`: reads that wait for an agent, a job or the way to another host. */
import { Fault } from "../fault.ts";
import type { Maybe, OpenFile, Request } from "../ninep/file.ts";
import type { LiveAgent, LiveJob, LiveSession } from "../session/live.ts";
import type { Site } from "./context.ts";
import type { Content } from "./files.ts";

/**
 * Length that Tstat tells. Where it is 0, `sendfile(2)` and some readers find nothing to read; where it is less than the answer,
 * others stop within it. No answer is as long as this.
 */
const toldLength = 4096;

/** What a read can wait for. */
interface Watched {
  watch(listener: () => void): () => void;
}

const itself = <T>(target: T): T => target;

/** Answers as soon as the state has changed since the open, and after that since its own last answer; never without a change. */
export const statewait = waiting((agent: LiveAgent) => {
  let seen = agent.changes;
  return () => {
    if (agent.changes === seen) return undefined;
    seen = agent.changes;
    return agent.state;
  };
}, itself);

/** Answers as soon as the agent is idle and nothing is about to start by itself. */
export const idlewait = waiting((agent: LiveAgent) => () => (agent.settled ? "idle" : undefined), itself);

/** The same for a job; but whoever opens it when the job has ended is told so, since there will be no change any more. */
export const jobwait = waiting((job: LiveJob) => {
  let seen = job.ended ? -1 : job.changes;
  return () => {
    if (job.changes === seen) return undefined;
    seen = job.changes;
    return job.state;
  };
}, itself);

/** Answers as soon as the line of `remote` has changed, as `statewait` does. */
export const remotewait = waiting(
  (session: LiveSession) => {
    let seen = session.remote.changes;
    return () => {
      const { changes, line } = session.remote;
      if (changes === seen) return undefined;
      seen = changes;
      return line;
    };
  },
  (session) => session.remote,
);

/** `arm` runs at Topen and returns the question that is asked at a read and after every change, until it has an answer. */
function waiting<T>(
  arm: (target: T) => () => string | undefined,
  watched: (target: T) => Watched,
): Content<T> {
  return {
    look: () => ({ length: toldLength, print: () => 0 }),
    open: (site) => new WaitFile(site, watched(site.target), arm(site.target)),
  };
}

class WaitFile<T> implements OpenFile {
  #answer = new Uint8Array(0);

  constructor(
    private readonly site: Site<T>,
    private readonly watched: Watched,
    private readonly ask: () => string | undefined,
  ) {}

  /** Waits at offset 0; from any other offset it goes on with the answer given last, after which comes the end of file. */
  read(offset: number, count: number, request: Request): Maybe<Uint8Array> {
    if (offset > 0) return this.#answer.subarray(offset, offset + count);
    const word = this.ask();
    return word === undefined ? this.#wait(count, request) : this.#give(word, count);
  }

  #give(word: string, count: number): Uint8Array {
    this.#answer = new TextEncoder().encode(`${word}\n`);
    return this.#answer.subarray(0, count);
  }

  #wait(count: number, { signal }: Request): Promise<Uint8Array> {
    const look = () => {
      this.site.alive();
      const word = this.ask();
      return word === undefined ? undefined : this.#give(word, count);
    };
    return nextAnswer(look, [this.watched, this.site.context.view.agent], signal);
  }
}

/**
 * Resolves with the first answer that `look` has. It is asked after every change of what is watched, and what it throws is the answer
 * then. Rejects when the request is interrupted.
 */
export function nextAnswer<A>(
  look: () => A | undefined,
  watched: readonly (Watched | undefined)[],
  signal: AbortSignal,
): Promise<A> {
  return new Promise((resolve, reject) => {
    const end = () => {
      for (const unwatch of unwatches) unwatch?.();
      signal.removeEventListener("abort", interrupt);
    };
    const interrupt = () => {
      end();
      reject(new Fault("interrupted", ""));
    };
    const changed = () => {
      try {
        const answer = look();
        if (answer === undefined) return;
        resolve(answer);
      } catch (error) {
        reject(error);
      }
      end();
    };
    const unwatches = watched.map((one) => one?.watch(changed));
    signal.addEventListener("abort", interrupt, { once: true });
    if (signal.aborted) interrupt();
  });
}
