/** Answers the questions of an ssh program, which asks by running SSH_ASKPASS (ssh(1)). */
import { chmodSync, symlinkSync, writeFileSync } from "node:fs";
import { createServer, type Server, type Socket } from "node:net";
import { join } from "node:path";
import type { Deadline } from "../deadline.ts";
import { ownCommand } from "../own.ts";
import type { Askpass } from "../transport.ts";
import type { AskpassAnswer, AskpassQuestion } from "./askpass-program.ts";
import { names } from "./folder.ts";

/** As ssh asks whether a host is the right one. */
const hostQuestion = /\(yes\/no(\/\[fingerprint\])?\)\?\s*$|type 'yes', 'no' or the fingerprint/i;

/** Longer questions are none. Bytes. */
const longest = 64 << 10;

export class AskpassBroker {
  /** Somebody was asked and gave no answer. */
  declined = false;
  private readonly sockets = new Set<Socket>();

  private constructor(
    private readonly server: Server,
    private readonly people: Askpass | undefined,
    private readonly target: string,
    private readonly newHostKey: "refuse" | "ask" | "accept",
    private readonly deadline: Deadline,
  ) {
    server.on("connection", (socket) => this.serve(socket));
  }

  /**
   * @param folder private; the socket and the program's link get into it
   * @param people undefined: every question is answered with no
   */
  static async open(
    folder: string,
    people: Askpass | undefined,
    target: string,
    newHostKey: "refuse" | "ask" | "accept",
    deadline: Deadline,
  ): Promise<AskpassBroker> {
    const server = createServer();
    await new Promise<void>((resolve, reject) => {
      server.once("error", reject);
      server.listen(join(folder, names.askpass), resolve);
    });
    return new AskpassBroker(server, people, target, newHostKey, deadline);
  }

  close(): void {
    this.server.close();
    for (const socket of this.sockets) socket.destroy();
  }

  private serve(socket: Socket): void {
    this.sockets.add(socket);
    let text = "";
    socket.setEncoding("utf8");
    socket.on("error", () => {});
    socket.on("close", () => this.sockets.delete(socket));
    socket.on("data", (piece) => {
      text += piece;
      if (text.length > longest) socket.destroy();
      if (!text.endsWith("\n")) return;
      const question = parse(text);
      if (!question) return void socket.destroy();
      if (question.kind === "none") {
        this.people?.notice(question.prompt);
        // ssh ends the program when what it tells of has happened: a key was touched.
        const touched = new Promise<void>((resolve) => socket.once("close", () => resolve()));
        void this.deadline.during(touched);
        return;
      }
      this.deadline.during(this.answer(question)).then(
        (answer) => socket.end(`${JSON.stringify({ answer } satisfies AskpassAnswer)}\n`),
        () => socket.destroy(),
      );
    });
  }

  private async answer({ kind, prompt }: AskpassQuestion): Promise<string | undefined> {
    const { people, target } = this;
    if (hostQuestion.test(prompt)) {
      if (this.newHostKey === "accept") return encoded("yes");
      const yes = this.newHostKey === "ask" && (await people?.confirm(prompt, { target }));
      return encoded(yes ? "yes" : "no");
    }
    if (kind === "confirm") return (await people?.confirm(prompt, { target })) ? "" : undefined;
    const secret = await people?.secret(prompt, { target, echo: false });
    if (secret === undefined) {
      this.declined = true;
      return;
    }
    const text = Buffer.from(secret).toString("base64");
    secret.fill(0);
    return text;
  }
}

function parse(text: string): AskpassQuestion | undefined {
  try {
    return JSON.parse(text) as AskpassQuestion;
  } catch {
    return;
  }
}

function encoded(text: string): string {
  return Buffer.from(text).toString("base64");
}

/** What the ssh program needs in its environment. No secret is in it. */
export function askpassEnvironment(folder: string): Record<string, string> {
  const path = join(folder, names.program);
  const command = ownCommand("ssh-askpass", "openssh/askpass-program.ts");
  // ssh gives no arguments of ours, so the program knows by its name what it is to do. A link is no file that a mount with noexec minds.
  if (command.length === 2) symlinkSync(command[0]!, path);
  else {
    const line = command.map((word) => `'${word.replaceAll("'", `'\\''`)}'`).join(" ");
    writeFileSync(path, `#!/bin/sh\nexec ${line} "$@"\n`);
    chmodSync(path, 0o700);
  }
  // ssh asks by a program only where there could be a screen.
  return { SSH_ASKPASS: path, SSH_ASKPASS_REQUIRE: "force", DISPLAY: process.env.DISPLAY || "none" };
}
