/** The commands of `ollie-9p`. */
import type { Program } from "../program.ts";
import { globals } from "./connection.ts";

export const ollie9p: Program<typeof globals> = {
  name: "ollie-9p",
  about:
    "Reads and writes the files of a 9P2000 server.\nThe server is ADDR, else $OLLIE_ADDR, else the olliesrv of this user. PATH may begin with a slash or not.",
  globals,
  commands: {
    read: { summary: "print a file", load: async () => (await import("./read.ts")).read },
    write: { summary: "write stdin to a file", load: async () => (await import("./write.ts")).write },
    rdwr: {
      summary: "write stdin to a file, then print its answer",
      load: async () => (await import("./write.ts")).rdwr,
    },
    ask: { summary: "ask an agent and print its reply", load: async () => (await import("./ask.ts")).ask },
    ls: { summary: "list a directory", load: async () => (await import("./list.ts")).ls },
    stat: { summary: "show what is known of a file", load: async () => (await import("./list.ts")).stat },
    rm: { summary: "remove a file or directory", load: async () => (await import("./change.ts")).rm },
    mv: { summary: "rename a file within its directory", load: async () => (await import("./change.ts")).mv },
    create: { summary: "make a file", load: async () => (await import("./change.ts")).create },
    readline: {
      summary: "read one edited line or block from the terminal and print it",
      load: async () => (await import("./readline.ts")).readline,
    },
  },
};
