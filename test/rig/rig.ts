/**
 * Other hosts, on this machine and without containers: each in namespaces of its own, with a real sshd, own people and own mounts,
 * behind a cable that can be as bad as it likes.
 *
 * ```ts
 * const client = await startClient();
 * const host = await client.startHost({ users: { alice: "fish" }, link: { delay: 25 } });
 * await client.ssh(host, "alice", "hostname");
 * await client.close();
 * ```
 *
 * Nothing of it is on the network of the machine: programs that are to reach a host run in the client's, by `client.run` or
 * `client.spawn`. All namespaces end with the process that has made them, even when that is killed.
 */
import { Client } from "./client.ts";
import type { Host, HostOptions } from "./host.ts";

export type { Client } from "./client.ts";
export type { Host, HostOptions } from "./host.ts";
export * from "./needs.ts";

export function startClient(): Promise<Client> {
  return Client.start();
}

/** A client with one host; to close the client is to close both. */
export async function startHost(options?: HostOptions): Promise<{ client: Client; host: Host }> {
  const client = await Client.start();
  try {
    return { client, host: await client.startHost(options) };
  } catch (error) {
    await client.close();
    throw error;
  }
}
