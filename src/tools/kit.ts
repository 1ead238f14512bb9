/** The module "ollie:tool" (declared in data/tools/ollie-tool.d.ts): what the shipped tools need beside Bun itself. */
import { readFileSync, writeSync } from "node:fs";

/** Above this many bytes no diff is computed: nobody would read it, and the algorithm takes its time. */
const diffInput = 4 * 1024 * 1024;
/** Changed lines at which the algorithm gives up. */
const diffEdits = 2000;

export const kit = {
  async readArgs<T>(): Promise<T> {
    // Not Bun.stdin.text(): it starts threads, which take longer than most tools.
    return JSON.parse(readFileSync(0, "utf8")) as T;
  },

  print(text: string): void {
    writeAll(1, `${text}\n`);
  },

  fail(text: string): never {
    writeAll(2, `${text}\n`);
    process.exit(1);
  },

  call: {
    session: variable("OLLIE_SESSION"),
    agent: variable("OLLIE_AGENT"),
    cwd: process.cwd(),
    tmp: variable("OLLIE_TMP"),
  },

  unifiedDiff(name: string, before: string, after: string, limit = 6000): string {
    const lines = (text: string) => text.split("\n").length - (text.endsWith("\n") ? 1 : 0);
    const summary = `(a diff too long to show: ${lines(before)} lines before, ${lines(after)} after)`;
    if (before.length + after.length > diffInput) return summary;
    const { createTwoFilesPatch } = require("diff") as typeof import("diff");
    const patch = createTwoFilesPatch(name, name, before, after, undefined, undefined, {
      context: 3,
      maxEditLength: diffEdits,
    });
    if (patch === undefined) return summary;
    // The first line is a row of "=" that only patches of several files need.
    const text = patch.slice(patch.indexOf("--- ")).trimEnd();
    return Buffer.byteLength(text) > limit ? summary : text;
  },

  ignoreRules(text: string) {
    const ignore = require("ignore") as typeof import("ignore");
    return ignore().add(text);
  },

  async findTool(name: string) {
    const { createRegistry } = await import("./registry.ts");
    return createRegistry(variable("OLLIE_TOOLS_PATH")).get(name);
  },

  async skills() {
    const { listSkills } = await import("../config/skills.ts");
    return listSkills(variable("OLLIE_SKILLS_PATH").split(":").filter(Boolean));
  },

  service: {
    async ask<T>(request: unknown): Promise<T> {
      const { askService } = await import("./service-talk.ts");
      return (await askService(variable("OLLIE_SERVICE"), request)) as T;
    },
    async serve<T>(answer: (request: T, signal: AbortSignal) => Promise<unknown>): Promise<void> {
      const { serveRequests } = await import("./service-talk.ts");
      await serveRequests(variable("OLLIE_SERVICE"), (request, signal) => answer(request as T, signal));
    },
  },

  nine: {
    read: (path: string) => withTree((tree) => tree.readText(path)),
    write: (path: string, text: string) => withTree((tree) => tree.writeFile(path, text)),
  },
} satisfies typeof import("ollie:tool");

// All but what every tool needs is loaded where it is needed: most tools need none of it, and start faster without. (What answers at once
// does it by `require`, which does not have to be awaited.)

/** True in the program that runs tools on other hosts, where no tree is: src/build/compile.ts leaves out what would go to it. */
declare const OLLIE_ON_HOST: boolean | undefined;

async function withTree<T>(work: (tree: import("../ninep/client.ts").Client) => Promise<T>): Promise<T> {
  if (typeof OLLIE_ON_HOST !== "undefined" && OLLIE_ON_HOST) {
    throw new Error(
      'ollie\'s files are not on this host: a tool that needs them says "remote": false in its sidecar',
    );
  } else {
    const { dial } = await import("../ninep/dial.ts");
    const tree = await dial(variable("OLLIE_ADDR"));
    try {
      return await work(tree);
    } finally {
      tree.close();
    }
  }
}

function variable(name: string): string {
  return process.env[name] ?? "";
}

function writeAll(fd: number, text: string): void {
  const bytes = Buffer.from(text);
  for (let done = 0; done < bytes.length; ) done += writeSync(fd, bytes, done);
}
