import type { Client } from "../../ninep/client.ts";
import { NineError, phrase } from "../../ninep/errors.ts";
import { OREAD } from "../../ninep/file.ts";
import { command, WrongUse } from "../program.ts";
import { type globals, withServer } from "./connection.ts";

const rmOptions = {
  recursive: { type: "boolean", short: "r", help: "a directory with everything in it" },
} as const;

export const rm = command<typeof rmOptions, typeof globals>({
  usage: "[-r] PATH",
  about: "Removes the file, or with -r the directory. To remove a session or an agent ends it.",
  options: rmOptions,
  words: [1, 1],
  run({ values, words, globals }) {
    return withServer(globals, async (client, signal) => {
      await remove(client, words[0]!, values.recursive ?? false, signal);
      return 0;
    });
  },
});

async function remove(client: Client, path: string, recursive: boolean, signal: AbortSignal): Promise<void> {
  const fid = await client.walk(path, signal);
  // The server might take it for a wish to remove all that is in it: olliesrv deletes sessions so.
  if (fid.isDirectory && !recursive)
    throw new NineError(phrase.isDir, "rm -r removes it with all that is in it");
  if (fid.isDirectory) {
    for (const { name } of await client.readDir(path, signal))
      await remove(client, `${path}/${name}`, true, signal);
  }
  signal.throwIfAborted();
  await fid.remove();
}

export const mv = command<Record<never, never>, typeof globals>({
  usage: "PATH NAME",
  about:
    "Gives the file another name. NAME may be a path with the same directory: 9P2000 moves nothing from one directory to another.",
  options: {},
  words: [2, 2],
  run({ words, globals }) {
    const [from, to] = words.map((path) => path.split("/").filter((name) => name !== ""));
    const name = to!.at(-1);
    if (name === undefined || from!.length === 0) throw new WrongUse("the root cannot be renamed");
    if (to!.length > 1 && to!.slice(0, -1).join("/") !== from!.slice(0, -1).join("/")) {
      throw new WrongUse("a file can only be renamed within its directory");
    }
    return withServer(globals, async (client, signal) => {
      await client.rename(words[0]!, name, signal);
      return 0;
    });
  },
});

const createOptions = {
  directory: { type: "boolean", short: "d", help: "make a directory" },
} as const;

export const create = command<typeof createOptions, typeof globals>({
  usage: "[-d] PATH",
  about: "Makes an empty file, where the server lets files be made.",
  options: createOptions,
  words: [1, 1],
  run({ values, words, globals }) {
    return withServer(globals, async (client, signal) => {
      if (values.directory) await client.mkdir(words[0]!, 0o777, signal);
      else await (await client.create(words[0]!, 0o666, OREAD, signal)).clunk();
      return 0;
    });
  },
});
