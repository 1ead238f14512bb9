/** `ollie-remote`: what runs on other hosts. People seldom call it; `olliesrv remote` is their end. */
import type { Program } from "../program.ts";

export const ollieRemote: Program = {
  name: "ollie-remote",
  about:
    "Runs the tools of ollie's sessions on this host. It is brought and started by olliesrv over SSH; see doc/REMOTE.md.",
  globals: {},
  commands: {
    serve: {
      summary: "speak the protocol on stdin and stdout",
      load: async () => (await import("./serve.ts")).serve,
    },
    daemon: {
      summary: "keep a session; started by serve",
      load: async () => (await import("./daemon.ts")).daemon,
    },
    "sandbox-exec": {
      summary: "become a program that is confined; takes landrun's flags",
      load: async () => (await import("../sandbox-exec.ts")).sandboxExec,
    },
  },
};
