/** A trust anchor as the program of a host: `main.ts check|install|launch …`, or `main.ts forced` with the words in SSH_ORIGINAL_COMMAND. */
import { writeSync } from "node:fs";
import { anchor, become, forcedAnchor } from "../../../../src/remote/host/anchor/anchor.ts";

const io = {
  environment: process.env,
  input: process.stdin,
  say: (text: string) => void writeSync(1, text),
  become,
};
const [first, ...rest] = process.argv.slice(2);
const fixed = { ...(rest[0] && { policy: rest[0] }) };
process.exit(first === "forced" ? await forcedAnchor(io, fixed) : await anchor([first!, ...rest], io));
