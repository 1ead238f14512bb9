/** A server on a unix socket of its own, and clients of it. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Client, ClientOptions } from "../../src/ninep/client.ts";
import { dial } from "../../src/ninep/dial.ts";
import { listenUnix } from "../../src/ninep/listen.ts";
import { type Root, Server, type ServerOptions } from "../../src/ninep/server.ts";

const cleanups: (() => unknown)[] = [];

/**
 * To be given to `afterEach` by every file that uses this one: a hook registered here would belong to the first of them alone.
 */
export async function cleanUp(): Promise<void> {
  for (const step of cleanups.splice(0).reverse()) await step();
}

/** Runs after the test, the last one first. */
export function cleanup(step: () => unknown): void {
  cleanups.push(step);
}

/** A private folder that is gone after the test. */
export function temporary(): string {
  const folder = mkdtempSync(join(tmpdir(), "ninep-"));
  cleanup(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

/** Serves the tree until the end of the test. */
export async function serve(root: Root, options?: ServerOptions) {
  const path = join(temporary(), "9p");
  const server = new Server(root, options);
  const listener = await listenUnix(path, server);
  cleanup(async () => {
    listener.stop();
    await server.close();
  });
  const connect = async (clientOptions?: ClientOptions): Promise<Client> => {
    const client = await dial(`unix!${path}`, clientOptions);
    cleanup(() => client.close());
    return client;
  };
  return { server, path, connect };
}
