/** What ssh runs as SSH_ASKPASS: hands the question to the process that has started ssh, and prints the answer. */
import { connect } from "node:net";
import { dirname, join } from "node:path";
import { names } from "./folder.ts";

export interface AskpassQuestion {
  /** SSH_ASKPASS_PROMPT of ssh(1): to be answered, to be agreed to, or only to be told. */
  kind: "secret" | "confirm" | "none";
  prompt: string;
}

export interface AskpassAnswer {
  /** Bytes in base64; left out: nobody answers. */
  answer?: string;
}

/** @returns the exit status */
export async function runAskpass(prompt: string): Promise<number> {
  const wanted = process.env.SSH_ASKPASS_PROMPT;
  const kind = wanted === "confirm" || wanted === "none" ? wanted : "secret";
  const text = await ask({ kind, prompt });
  if (!text) return 1;
  const { answer } = JSON.parse(text) as AskpassAnswer;
  if (answer === undefined) return 1;
  await Bun.write(Bun.stdout, Buffer.concat([Buffer.from(answer, "base64"), Buffer.from("\n")]));
  return 0;
}

/** "" where the other end goes away. */
function ask(question: AskpassQuestion): Promise<string> {
  return new Promise((resolve) => {
    const socket = connect(join(dirname(process.env.SSH_ASKPASS!), names.askpass));
    let text = "";
    socket.setEncoding("utf8");
    socket.on("connect", () => socket.write(`${JSON.stringify(question)}\n`));
    socket.on("data", (piece) => {
      text += piece;
    });
    socket.on("error", () => resolve(""));
    socket.on("close", () => resolve(text));
  });
}

if (import.meta.main) process.exit(await runAskpass(process.argv[2] ?? ""));
