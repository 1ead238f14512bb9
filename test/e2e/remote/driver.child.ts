/**
 * The client's end of the bootstrap, in the network of the rig: one command a line on stdin, one answer a line on stdout.
 *
 * A command is `{id, target, options, via?, cut?}`: connect, bring ollie-remote there, read its hello, leave.
 */

import { CodedFault } from "../../../src/fault.ts";
import { boot } from "../../../src/remote/bootstrap/boot.ts";
import type { BootOptions } from "../../../src/remote/bootstrap/bootstrap.ts";
import { connect } from "../../../src/ssh/connect.ts";
import type { SshConnection } from "../../../src/ssh/transport.ts";

export interface Command {
  target: string;
  via?: "auto" | "ssh2" | "openssh";
  options?: Partial<Pick<BootOptions, "programs" | "bootstrapCommand" | "root" | "policy" | "stall">>;
  /** Leave when so many bytes have been uploaded. */
  cut?: number;
}

export interface Answer {
  digest: string;
  hit: boolean;
  uploaded: number;
  notes: string[];
  hello: { user: string; home: string; arch: string; libc: string; digest: string };
  /** What was told of the way, without the numbers. */
  doing: string[];
}

async function carryOut({ target, via = "auto", options, cut }: Command): Promise<Answer> {
  const control = new AbortController();
  const askpass = undefined;
  const connection = await connect(
    { name: target, connectTimeout: 20_000, via, batch: true, newHostKey: "refuse" },
    askpass,
    control.signal,
  );
  try {
    return await booted(connection);
  } finally {
    connection.close();
  }

  async function booted(connection: SshConnection): Promise<Answer> {
    const doing: string[] = [];
    const { channel, stdout, digest, hit, uploaded, notes } = await boot(connection, {
      stall: 30_000,
      ...options,
      signal: control.signal,
      onProgress: (progress) => {
        if (doing.at(-1) !== progress.doing) doing.push(progress.doing);
        if (cut !== undefined && progress.done !== undefined && progress.done > cut) connection.close();
      },
    });
    let text = "";
    const decoder = new TextDecoder();
    for await (const chunk of stdout) {
      text += decoder.decode(chunk, { stream: true });
      if (text.includes("\n")) break;
    }
    channel.end();
    if (!text.includes("\n")) throw new Error(`no hello: ${text}${channel.stderr()}`);
    const { user, home, arch, libc, digest: own } = JSON.parse(text).params;
    return { digest, hit, uploaded, notes, doing, hello: { user, home, arch, libc, digest: own } };
  }
}

async function answer(line: string): Promise<void> {
  const { id, ...command } = JSON.parse(line) as Command & { id: number };
  let said: object;
  try {
    said = { result: await carryOut(command) };
  } catch (error) {
    const { message } = error as Error;
    said =
      error instanceof CodedFault
        ? { fault: { code: error.code, message, hint: error.more.hint ?? "" } }
        : { fault: { code: "", message, hint: (error as Error).stack ?? "" } };
  }
  process.stdout.write(`${JSON.stringify({ id, ...said })}\n`);
}

if (import.meta.main) for await (const line of console) void answer(line);
