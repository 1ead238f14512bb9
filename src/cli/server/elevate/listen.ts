/** The broker's end of the approval socket: takes questions from servers of this user and puts them to the person, one at a time. */
import { distrust } from "../../../elevate/peer.ts";
import type { Answer, Question } from "../../../elevate/question.ts";
import { decidedLine, Lines, questionLine } from "../../../elevate/wire.ts";
import { toFault } from "../../../fault.ts";
import { checkLength, claim, privateFolder } from "../../../ninep/folder.ts";
import type { Asker } from "./asker.ts";

/** One connection: its lines, and the questions that have come on it and are not settled. */
interface Peer {
  lines: Lines;
  waiting: Map<string, AbortController>;
}

export interface BrokerListener {
  stop(): void;
}

/** @throws Fault as `listenUnix` does: the folder is another's, or a broker listens there already */
export async function listenForQuestions(
  path: string,
  asker: Asker,
  onNote: (text: string) => void,
): Promise<BrokerListener> {
  checkLength(path);
  privateFolder(path);
  const release = await claim(path);
  // Of two questions at once the person could answer the one while meaning the other.
  let line: Promise<void> = Promise.resolve();

  const answer = (socket: Bun.Socket<Peer>, question: Question) => {
    const settled = new AbortController();
    const { waiting } = socket.data;
    waiting.set(question.id, settled);
    line = line.then(async () => {
      if (settled.signal.aborted) return;
      const said = await asker.ask(question, settled.signal).catch(() => undefined);
      if (settled.signal.aborted) return;
      waiting.delete(question.id);
      if (!said) return void socket.end();
      socket.write(`${JSON.stringify(answerLine(question.id, said))}\n`);
      if (said.decision === "password") said.password.fill(0);
    });
  };
  const take = (socket: Bun.Socket<Peer>, text: string) => {
    const message: unknown = JSON.parse(text);
    const decided = decidedLine.safeParse(message);
    if (decided.success) socket.data.waiting.get(decided.data.id)?.abort();
    else answer(socket, questionLine.parse(message));
  };
  const dropAll = ({ data }: Bun.Socket<Peer>) => {
    for (const settled of data?.waiting.values() ?? []) settled.abort();
  };

  const mask = process.umask(0o177);
  try {
    const listener = Bun.listen<Peer>({
      unix: path,
      socket: {
        binaryType: "buffer",
        open(socket) {
          socket.data = { lines: new Lines(), waiting: new Map() };
          const reason = distrust((socket as { fd?: number }).fd);
          if (reason === undefined) return;
          onNote(`a connection was refused: ${reason}`);
          socket.terminate();
        },
        data(socket, chunk) {
          try {
            for (const text of socket.data.lines.push(chunk)) take(socket, text);
          } catch (error) {
            onNote(`a line made no sense: ${toFault(error).message.split("\n")[0]}`);
            socket.terminate();
          }
        },
        close: dropAll,
        error: dropAll,
      },
    });
    return {
      stop() {
        listener.stop(true);
        release();
      },
    };
  } catch (error) {
    release();
    throw toFault(error, `the socket ${path} cannot be made`);
  } finally {
    process.umask(mask);
  }
}

function answerLine(id: string, answer: Answer): object {
  if (answer.decision !== "password") return { id, ...answer };
  return { id, password: new TextDecoder().decode(answer.password) };
}
