/** Asking a broker: a program of the user's that listens at `OLLIE_ELEVATE_SOCKET` and shows questions to a person. */
import { toFault } from "../fault.ts";
import { distrust } from "./peer.ts";
import type { Answer, Question } from "./question.ts";
import { fits, Lines, parseAnswer } from "./wire.ts";

export interface BrokerCall {
  /** The broker has the question. */
  onAsked(): void;
  onAnswer(answer: Answer): void;
  /** It cannot be reached, has hung up or is not to be trusted: no answer will come. Called at most once, and not after `close`. */
  onGone(reason: string): void;
  /** A line that makes no sense; nothing follows from it. */
  onNonsense(reason: string): void;
}

export interface BrokerLink {
  /** Hangs up; where it was not this broker that has answered, tells it before how it was decided. */
  close(decided: "allow" | "deny" | "withdrawn"): void;
}

/** One connection a question: a broker may be as simple as a program that reads a line and writes one. */
export function askBroker(path: string, question: Question, call: BrokerCall): BrokerLink {
  const lines = new Lines();
  let socket: Bun.Socket | undefined;
  let over = false;
  let answered = false;
  /** What the socket has not taken yet. */
  let unsent: Uint8Array = Buffer.from(`${JSON.stringify(question)}\n`);

  const gone = (reason: string) => {
    if (over) return;
    over = true;
    socket?.terminate();
    call.onGone(reason);
  };
  const flush = () => {
    if (unsent.length > 0) unsent = unsent.subarray(Math.max(0, socket!.write(unsent)));
    if (unsent.length === 0 && over) socket!.end();
  };
  const take = (line: string) => {
    if (over) return;
    try {
      const { id, answer } = parseAnswer(line);
      if (id !== question.id) call.onNonsense(`no question ${JSON.stringify(id)} was asked here`);
      else if (!fits(question, answer))
        call.onNonsense(`asked for a ${question.kind}, it answered otherwise`);
      else {
        answered = true;
        call.onAnswer(answer);
      }
    } catch (error) {
      call.onNonsense(toFault(error).message);
    }
  };
  const last = () => lines.end().forEach(take);

  Bun.connect({
    unix: path,
    socket: {
      binaryType: "buffer",
      open(opened) {
        socket = opened;
        const reason = distrust((opened as { fd?: number }).fd);
        if (reason !== undefined) return gone(`the broker at ${path} is not trusted: ${reason}`);
        if (over) return opened.terminate();
        flush();
        call.onAsked();
      },
      drain: flush,
      data(_, chunk) {
        try {
          for (const line of lines.push(chunk)) take(line);
        } catch (error) {
          gone(`the broker at ${path} wrote ${toFault(error).message}`);
        }
      },
      end: last,
      close() {
        last();
        gone(`the broker at ${path} has hung up`);
      },
      error() {},
    },
  }).catch(() => gone(`no broker listens at ${path}`));

  return {
    close(decided) {
      if (over) return;
      over = true;
      if (!socket) return;
      const told = answered ? "" : `${JSON.stringify({ id: question.id, decided })}\n`;
      unsent = Buffer.concat([unsent, Buffer.from(told)]);
      flush();
    },
  };
}
