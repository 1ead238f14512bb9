/** The commands of `olliesrv`. */
import type { Program } from "../program.ts";

export const olliesrv: Program = {
  name: "olliesrv",
  about: "Runs agents and shows everything about them as a tree of files, spoken in 9P2000.",
  globals: {},
  commands: {
    start: { summary: "start in the background", load: async () => (await import("./control.ts")).start },
    fgstart: { summary: "run in the foreground", load: async () => (await import("./fgstart.ts")).fgstart },
    stop: { summary: "end the server", load: async () => (await import("./control.ts")).stop },
    restart: {
      summary: "end it and start it again",
      load: async () => (await import("./control.ts")).restart,
    },
    reload: {
      summary: "read env file and configs again",
      load: async () => (await import("./control.ts")).reload,
    },
    status: {
      summary: "say whether and where it runs",
      load: async () => (await import("./control.ts")).status,
    },
    doctor: {
      summary: "check configuration, backends, sandbox and machine",
      load: async () => (await import("./doctor.ts")).doctor,
    },
    elevate: {
      summary: "ask you when an agent wants out of the sandbox",
      load: async () => (await import("./elevate/command.ts")).elevate,
    },
    init: {
      summary: "install or update the shipped files",
      load: async () => (await import("./init.ts")).init,
    },
    "sandbox-exec": {
      summary: "run a program that may do only what is granted",
      load: async () => (await import("../sandbox-exec.ts")).sandboxExec,
    },
    sandbox: {
      summary: "show what tools may do in a folder, approve what a project asks for",
      load: async () => (await import("./sandbox.ts")).sandbox,
    },
    remote: {
      summary: "sessions on other hosts: list, probe, export, remove",
      load: async () => (await import("./remote/command.ts")).remote,
    },
    completions: {
      summary: "print completions for a shell",
      load: async () => (await import("./completions.ts")).completions,
    },
  },
};
