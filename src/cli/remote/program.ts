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
    check: {
      summary: "trust anchor: say whether a program is installed",
      load: async () => (await import("./anchor.ts")).check,
    },
    install: {
      summary: "trust anchor: take a program in from stdin",
      load: async () => (await import("./anchor.ts")).install,
    },
    launch: {
      summary: "trust anchor: become a program that is installed",
      load: async () => (await import("./anchor.ts")).launch,
    },
    bootstrap: {
      summary: "trust anchor: the forced command of a key",
      load: async () => (await import("./anchor.ts")).bootstrap,
    },
    gc: {
      summary: "remove sessions and tools that are past their time",
      load: async () => (await import("./gc.ts")).gc,
    },
    "sandbox-exec": {
      summary: "become a program that is confined; takes landrun's flags",
      load: async () => (await import("../sandbox-exec.ts")).sandboxExec,
    },
  },
};
