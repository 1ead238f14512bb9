/** A broker that a test speaks for, and questions to ask. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import pino from "pino";
import { type ApprovalOptions, Approvals } from "../../src/elevate/approvals.ts";
import type { Answer, Question } from "../../src/elevate/question.ts";

export { until } from "../until.ts";

export function folder(): string {
  const path = mkdtempSync(join(tmpdir(), "ollie-elevate-"));
  process.on("exit", () => rmSync(path, { recursive: true, force: true }));
  return path;
}

/** Listens on a socket of its own; what it is told is in `told`, a line an entry. */
export class FakeBroker {
  readonly path = join(folder(), "elevate.sock");
  readonly told: Record<string, unknown>[] = [];
  readonly #sockets = new Set<Bun.Socket>();
  readonly #listener = Bun.listen({
    unix: this.path,
    socket: {
      open: (socket) => void this.#sockets.add(socket),
      close: (socket) => void this.#sockets.delete(socket),
      data: (socket, chunk) => {
        for (const line of chunk.toString().trimEnd().split("\n")) {
          const message = JSON.parse(line);
          this.told.push(message);
          if (!("decided" in message)) this.onQuestion(message, (text) => void socket.write(text));
        }
      },
    },
  });

  constructor(
    private readonly onQuestion: (question: Question, write: (text: string) => void) => void = () => {},
  ) {}

  get connections(): number {
    return this.#sockets.size;
  }

  hangUp(): void {
    for (const socket of this.#sockets) socket.end();
  }

  stop(): void {
    this.#listener.stop(true);
  }
}

/** With what they log. */
export function approvals(options: Partial<ApprovalOptions> = {}) {
  const log: Record<string, unknown>[] = [];
  const logger = pino({ level: "debug" }, { write: (line: string) => void log.push(JSON.parse(line)) });
  const made = new Approvals({
    log: logger,
    socket: () => undefined,
    limit: () => undefined,
    ...options,
  });
  return { approvals: made, log };
}

export function about(command: string, kind: Question["kind"] = "approval"): Omit<Question, "id"> {
  return { kind, session: "s", agent: "a", tool: "shell", command, cwd: "/srv", host: "here" };
}

export function ask(from: Approvals, command = "x", kind?: Question["kind"]): Promise<Answer> {
  return from.ask(about(command, kind), new AbortController().signal);
}
