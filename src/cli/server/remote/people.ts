/** Questions of SSH, asked on the terminal that the command was started in. */
import { createInterface } from "node:readline/promises";
import { isatty } from "node:tty";
import { visible } from "../../../elevate/visible.ts";
import type { Askpass } from "../../../ssh/transport.ts";
import { writeError } from "../../stdio.ts";

/** Undefined where nobody could answer. */
export function peopleHere(): Askpass | undefined {
  if (!isatty(0) || !isatty(2)) return undefined;
  return {
    async secret(prompt, { echo }) {
      await writeError(visible(prompt));
      return echo ? Buffer.from(await line()) : hiddenLine();
    },
    async confirm(question) {
      await writeError(`${visible(question)} (yes/no) `);
      return /^yes$/i.test((await line()).trim());
    },
    notice: (text) => void writeError(`${visible(text)}\n`),
  };
}

async function line(): Promise<string> {
  const reader = createInterface({ input: process.stdin });
  try {
    return await reader.question("");
  } finally {
    reader.close();
  }
}

/** In raw mode the keys that a terminal would take care of come as bytes. Undefined: nothing was typed, or Control-C. */
async function hiddenLine(): Promise<Uint8Array | undefined> {
  const { stdin } = process;
  stdin.setRawMode(true);
  stdin.resume();
  const typed: number[] = [];
  try {
    return await new Promise((resolve) => {
      stdin.on("data", (bytes: Uint8Array) => {
        for (const byte of bytes) {
          if (byte === 10 || byte === 13) resolve(typed.length > 0 ? Uint8Array.from(typed) : undefined);
          else if (byte === 3 || byte === 4) resolve(undefined);
          else if (byte === 0x7f || byte === 8) typed.pop();
          else typed.push(byte);
        }
      });
    });
  } finally {
    typed.fill(0);
    stdin.removeAllListeners("data");
    stdin.pause();
    stdin.setRawMode(false);
    await writeError("\n");
  }
}
