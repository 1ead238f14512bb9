/** A host for one command: the connection, and ollie-remote at its other end. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import type { Config } from "../../../config/config.ts";
import { boot } from "../../../remote/bootstrap/boot.ts";
import type { Boot, Booted } from "../../../remote/bootstrap/bootstrap.ts";
import { Bridge } from "../../../remote/client/bridge.ts";
import { Connections, type Lease } from "../../../remote/client/connections.ts";
import { loadRemotes, type Profile, remotesFile } from "../../../remote/policy/remotes.ts";
import type { HostHello } from "../../../remote/protocol/hello.ts";
import type { Peer } from "../../../remote/protocol/peer.ts";
import { writeError } from "../../stdio.ts";
import { peopleHere } from "./people.ts";

/** What tests put in the place of SSH. */
export interface Means {
  connections: Connections;
  boot: Boot;
}

export interface Reached {
  readonly profile: Profile;
  readonly lease: Lease;
  readonly booted: Booted;
  readonly hello: HostHello;
  readonly peer: Peer;
  /** Another channel of the same connection; this one is closed first. */
  again(): Promise<Reached>;
  close(): void;
}

/** @throws CodedFault that says what is wrong on the way */
export async function reach(
  config: Pick<Config, "environment" | "paths" | "settings">,
  target: string,
  means: Means = { connections: new Connections(), boot },
): Promise<Reached> {
  const { environment, paths, settings } = config;
  const profile = loadRemotes(remotesFile(environment, paths.config), settings.ssh).profileFor(target);
  const never = new AbortController().signal;
  const lease = await means.connections.lease(profile.ssh, peopleHere(), never);
  const client = clientId(paths.state);
  const open = async (): Promise<Reached> => {
    const onProgress = progressLine();
    const booted = await means.boot(lease.connection, { ...profile.boot, onProgress, signal: never });
    const bridge = new Bridge(booted, {
      handlers: {},
      maxFrame: profile.limits.maxFrame,
      limit: profile.timeouts.rpc,
      onLost: () => {},
    });
    const hello = await bridge.greet(client, never);
    return {
      profile,
      lease,
      booted,
      hello,
      peer: bridge.peer,
      again() {
        bridge.close();
        return open();
      },
      close() {
        bridge.close();
        lease.release();
      },
    };
  };
  try {
    return await open();
  } catch (error) {
    lease.release();
    throw error;
  }
}

/** The server of this state folder, whose sessions may be looked at; else a name of this command's own. */
function clientId(state: string): string {
  try {
    return readFileSync(join(state, "remote-client"), "utf8").trim() || "olliesrv-remote";
  } catch {
    return "olliesrv-remote";
  }
}

/** Tells of an upload once in a while: it may take minutes. */
function progressLine() {
  let told = 0;
  return ({ doing, done, total, left }: { doing: string; done?: number; total?: number; left?: number }) => {
    if (done === undefined || total === undefined || Date.now() - told < 1000) return;
    told = Date.now();
    const megabytes = (bytes: number) => (bytes / 1e6).toFixed(1);
    const rest = left !== undefined && Number.isFinite(left) ? `, ${Math.ceil(left)} s left` : "";
    void writeError(`${doing} ${megabytes(done)} of ${megabytes(total)} MB${rest}\n`);
  };
}
