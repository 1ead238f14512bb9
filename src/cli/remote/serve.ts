/** `ollie-remote serve`. */
import { writeSync } from "node:fs";
import { Bridge } from "../../remote/host/bridge.ts";
import { placesOf } from "../../remote/host/places.ts";
import { command } from "../program.ts";

export const serve = command({
  usage: "[--cwd DIR] [--root DIR] [--policy FILE]",
  about:
    "Speaks the protocol of doc/REMOTE_PROTOCOL.md on stdin and stdout until stdin ends. Sessions and what runs in them live on: each has a\n" +
    "daemon of its own.",
  options: {
    cwd: { type: "string", value: "DIR", help: "working folder of sessions that name none" },
    root: { type: "string", value: "DIR", help: "where sessions are kept" },
    policy: { type: "string", value: "FILE", help: "the hard policy of this host" },
  },
  words: [0, 0],
  async run({ values }) {
    const out = Bun.stdout.writer();
    const sink = {
      async write(bytes: Uint8Array) {
        out.write(bytes);
        await out.flush();
      },
    };
    // The reader has gone: nobody will say anything more either.
    for (const signal of ["SIGHUP", "SIGPIPE"] as const) process.on(signal, () => process.exit(0));
    try {
      const { root, policy, cwd } = values;
      await new Bridge(placesOf(process.env, { root, policy }), sink, cwd).run(Bun.stdin.stream());
    } catch (error) {
      writeSync(2, `ollie-remote: ${(error as Error).message}\n`);
      return 1;
    }
    return 0;
  },
});
