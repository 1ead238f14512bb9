/**
 * What a TypeScript tool and its service say to each other, as files of a folder that both may write: `N.request` and `N.answer`, each
 * renamed into place. Sockets will not do: there are sandboxes that let none through but TCP.
 *
 * The server takes the files of a call away when the call has ended, and the folder when the service has. So a request that is gone has
 * been given up, and a request that is gone without an answer will not get one.
 */
import { existsSync, readdirSync, readFileSync, renameSync, rmSync, watch, writeFileSync } from "node:fs";
import { basename, join } from "node:path";

type Answer = { result?: unknown } | { error: string };

const asked = ".request";
const answered = ".answer";
/** Milliseconds between two looks for an answer: the first, and the longest. */
const firstPause = 2;
const longestPause = 20;
/** Milliseconds between two looks at whether requests are still there. */
const pause = 200;

/**
 * @param place the call's own, `OLLIE_SERVICE`: the path of its files without what they end in
 * @throws Error with the service's words, or that says why there are none
 */
export async function askService(place: string, request: unknown): Promise<unknown> {
  put(place + asked, request);
  for (let next = firstPause; ; next = Math.min(2 * next, longestPause)) {
    // In this order: the answer may come in between.
    const lost = !existsSync(place + asked);
    if (existsSync(place + answered)) break;
    if (lost) throw new Error("the tool's service has ended without an answer");
    await Bun.sleep(next);
  }
  const answer = JSON.parse(readFileSync(place + answered, "utf8")) as Answer;
  if ("error" in answer) throw new Error(answer.error);
  return answer.result;
}

/**
 * Says on stdout that it is ready, and answers until the process is ended. What `answer` throws is told to who asked.
 * @param folder `OLLIE_SERVICE` of a service
 * @param answer its signal is aborted when the request has been given up
 */
export async function serveRequests(
  folder: string,
  answer: (request: unknown, signal: AbortSignal) => Promise<unknown>,
): Promise<void> {
  const taken = new Map<string, AbortController>();
  const look = () => {
    const there = new Set(readdirSync(folder).filter((name) => name.endsWith(asked)));
    for (const [name, gone] of taken) {
      if (there.has(name)) continue;
      gone.abort();
      taken.delete(name);
    }
    for (const name of there) {
      if (taken.has(name)) continue;
      const gone = new AbortController();
      taken.set(name, gone);
      void respond(join(folder, name), gone.signal, answer);
    }
  };
  watch(folder, look);
  // A system may have run out of watches, or lose an event.
  setInterval(look, pause);
  look();
  process.stdout.write("ready\n");
}

async function respond(
  path: string,
  signal: AbortSignal,
  answer: (request: unknown, signal: AbortSignal) => Promise<unknown>,
): Promise<void> {
  try {
    const request = JSON.parse(readFileSync(path, "utf8"));
    const said: Answer = await answer(request, signal).then(
      (result) => ({ result }),
      (error) => ({ error: error instanceof Error ? error.message : String(error) }),
    );
    if (!signal.aborted) put(join(path, "..", basename(path, asked) + answered), said);
  } catch (error) {
    if (!signal.aborted) console.error(`a request could not be answered: ${(error as Error).message}`);
    rmSync(path, { force: true });
  }
}

function put(path: string, value: unknown): void {
  const scratch = `${path}.new`;
  try {
    writeFileSync(scratch, JSON.stringify(value), { mode: 0o600 });
    renameSync(scratch, path);
  } catch (error) {
    rmSync(scratch, { force: true });
    throw error;
  }
}
