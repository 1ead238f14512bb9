/** A running server: store, sessions, tree and listeners, put together and taken apart again. */
import { join } from "node:path";
import type { Logger } from "pino";
import type { Config } from "../../config/config.ts";
import type { Secrets } from "../../config/secrets.ts";
import { sweepStale } from "../../exec/family.ts";
import { Fault } from "../../fault.ts";
import { ToolListeners } from "../../namespace/tool-listeners.ts";
import { Tree } from "../../namespace/tree.ts";
import { parseAddress } from "../../ninep/dial.ts";
import { type Listener, listenUnix } from "../../ninep/listen.ts";
import { requestName } from "../../ninep/messages.ts";
import { Server } from "../../ninep/server.ts";
import { Launcher } from "../../sandbox/launch/launcher.ts";
import { launchFolder } from "../../sandbox/places.ts";
import { shortcomings } from "../../sandbox/report.ts";
import { Sandbox } from "../../sandbox/sandbox.ts";
import { type Reports, Runtime } from "../../session/runtime.ts";
import { Shared } from "../../session/shared.ts";
import { Store } from "../../store/store.ts";

export interface ServeOptions {
  config: Config;
  /** Reads the configuration anew; for `reload`. */
  readConfig(): Config;
  /** Dial strings; those of tools lie beside the first one. */
  listen: string[];
  log: Logger;
  /** Confine no tool. */
  yolo?: boolean;
  /** Knows those of the configuration; learns those of later ones. */
  secrets: Secrets;
}

export interface Serving {
  /** What was found lost and what could not be opened: a sentence each. */
  readonly damage: readonly string[];
  /** Re-reads env file and configs; new sessions and turns use them at once. Throws the Fault of a configuration that is wrong. */
  reload(): void;
  /** Interrupts turns, saves, closes; within 5 s. */
  close(): Promise<void>;
}

/** Milliseconds that running turns get to end when the server does. */
const closeLimit = 3000;

/** @throws Fault: the state folder or a socket is in use (says by whom), an address is wrong, a folder cannot be used */
export async function serve({
  config,
  readConfig,
  listen,
  log,
  yolo,
  secrets,
}: ServeOptions): Promise<Serving> {
  for (const address of listen) requireUnix(address);
  const { store, report } = await Store.open(config.paths.state, secrets);
  const swept = sweepStale();
  if (swept > 0) report.push(`${swept} processes of tools had outlived their server and were ended`);
  try {
    const tools: ToolListeners = new ToolListeners(requireUnix(listen[0]!).path, () => server);
    const launcher = new Launcher(launchFolders(config, listen), config.settings.sandboxWithout);
    const runtimeFolder = config.environment.XDG_RUNTIME_DIR;
    const sandbox = new Sandbox(launcher, { yolo, runtime: runtimeFolder, home: config.paths.home });
    report.push(...shortcomings(sandbox.confinement));
    const shared = new Shared(config, tools, sandbox, log, listen);
    const told = shared.reports();
    const reports: Reports = {
      ...told,
      // Providers quote what they refuse.
      backends: (ask) => secrets.mask(told.backends(ask)),
      ninep: () => requests(server),
    };
    const runtime = new Runtime(store, shared, reports);
    const mask = (text: string, session: string | undefined) =>
      (runtime.session(session ?? "")?.store.secrets ?? secrets).mask(text);
    const tree = new Tree(runtime, { spoolDir: join(store.folder, "spool"), mask });
    const server = new Server(tree.attach, {
      onRefused: tree.onRefused,
      onBadFrame: (peer, error) => log.warn({ pid: peer.pid, err: error }, "bad frame"),
    });
    for (const sentence of [...report, ...(await runtime.restore())]) log.warn(sentence);
    const listeners: Listener[] = [];
    for (const address of listen) {
      const { path } = requireUnix(address);
      const onDenied = (who: object, reason: string) => log.warn({ ...who, reason }, "connection refused");
      const ownersOnly = { onNoToken: (fault: Fault) => log.warn(fault.message) };
      listeners.push(await listenUnix(path, server, { checkUid: true, onDenied, ownersOnly }));
      log.info({ address }, "listening");
    }
    tools.sweep();
    return {
      damage: runtime.damage,
      reload() {
        const next = readConfig();
        secrets.learnConfig(next.environment);
        shared.reload(next);
      },
      async close() {
        for (const listener of listeners) listener.stop();
        await runtime.close(closeLimit);
        shared.close();
        tools.close();
        await server.close();
        launcher.close();
        await store.release();
      },
    };
  } catch (error) {
    await store.release();
    throw error;
  }
}

/**
 * Where the programs that confine others are put: beside the socket, which is in memory as a rule, so that a full disk stops no tool; or
 * beside the sessions, where nothing can be executed there.
 */
function launchFolders({ paths }: Config, listen: readonly string[]): string[] {
  return [launchFolder(requireUnix(listen[0]!).path), join(paths.state, "launch")];
}

function requireUnix(address: string): { path: string } {
  const parsed = parseAddress(address);
  if (parsed.net !== "unix")
    throw new Fault("invalid", `cannot listen on ${address}: only unix!PATH is built in yet`);
  return parsed;
}

/** 9P requests by type, and open connections. */
function requests({ counters }: Server): ReturnType<Reports["ninep"]> {
  const counted = [...counters.ops].flatMap((n, type) => (n > 0 ? [[requestName(type), n] as const] : []));
  return { ops: Object.fromEntries(counted), connections: counters.connections };
}
