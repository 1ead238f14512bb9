/** `ollie-remote check|install|launch` and `ollie-remote bootstrap --forced`. */
import { writeSync } from "node:fs";
import { Fault } from "../../fault.ts";
import { type AnchorIo, anchor, become, forcedAnchor } from "../../remote/host/anchor/anchor.ts";
import { command } from "../program.ts";

const io: AnchorIo = {
  environment: process.env,
  // Only who installs reads it: of a program that is launched it is the protocol.
  get input() {
    return Bun.stdin.stream();
  },
  say(text) {
    const bytes = Buffer.from(text);
    for (let done = 0; done < bytes.length; ) done += writeSync(1, bytes, done);
  },
  become,
};

function step(name: "check" | "install" | "launch", usage: string, about: string) {
  return command({
    usage,
    about: `${about}\nSays so on stdout in a line that begins with OLLIE1; NONCE stands in it, so that a client knows it from anything else.`,
    options: {},
    words: [1, 8],
    ownWords: true,
    run: ({ words }) => anchor([name, ...words], io),
  });
}

export const check = step(
  "check",
  "HASH [NONCE]",
  "Says whether the program with that SHA-256 is installed here and may be launched.",
);
export const install = step(
  "install",
  "HASH [NONCE CODEC LENGTH SIGNED]",
  "Takes the program with that SHA-256 in from stdin: SIGNED bytes of signature and manifest, then LENGTH bytes packed with CODEC.",
);
export const launch = step(
  "launch",
  "HASH [NONCE] [--root DIR] [--policy FILE]",
  "Becomes `serve` of the program with that SHA-256, if it is as it was installed.",
);

export const bootstrap = command({
  usage: "--forced [--root DIR] [--policy FILE]",
  about:
    'For authorized_keys: command="ollie-remote bootstrap --forced". What the client has asked for is read from SSH_ORIGINAL_COMMAND, taken apart\n' +
    "and never given to a shell; it can be check, install and launch. A folder or policy named here cannot be changed by a client.",
  options: {
    forced: { type: "boolean", help: "read SSH_ORIGINAL_COMMAND" },
    root: { type: "string", value: "DIR", help: "where sessions are kept" },
    policy: { type: "string", value: "FILE", help: "the hard policy of this host" },
  },
  words: [0, 0],
  async run({ values: { forced, root, policy } }) {
    if (!forced)
      throw new Fault("invalid", "bootstrap is the forced command of a key: write bootstrap --forced");
    return forcedAnchor(io, { ...(root && { root }), ...(policy && { policy }) });
  },
});
