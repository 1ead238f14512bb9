import type { Logger } from "pino";
import type { Config } from "../../config/config.ts";
import { provideData } from "../../config/provide.ts";
import { Secrets } from "../../config/secrets.ts";
import { build } from "../../config/version.ts";
import { seal } from "../../exec/seal.ts";
import { toFault } from "../../fault.ts";
import { command } from "../program.ts";
import { writeOut } from "../stdio.ts";
import { announce, type Instance, withdraw } from "./instance.ts";
import { makeLog } from "./log.ts";
import { surviveMistakes } from "./mistakes.ts";
import { asArguments, configFor, listenAddresses, logLevel, startOptions } from "./options.ts";
import { type Serving, serve } from "./serve.ts";

/** Milliseconds after which a server that was told to end is gone, whatever still runs. */
const endLimit = 5000;
/** Sentences that are shown on a terminal. */
const fewLimit = 20;

export const fgstart = command({
  usage: "[OPTIONS]",
  about:
    "Runs the server in the foreground; its log goes to stderr. SIGTERM or Ctrl-C ends it, SIGHUP reads the configuration again.",
  options: startOptions,
  words: [0, 0],
  async run({ values }) {
    const ended = untilTold();
    seal();
    const before = configFor(values);
    const secrets = new Secrets();
    secrets.learnConfig(before.environment);
    const log = makeLog(logLevel(before, values), secrets);
    surviveMistakes(log);
    const missing = install(before, log);
    const config = configFor(values);
    for (const warning of config.warnings) log.warn(warning);
    const listen = listenAddresses(config, values);
    let serving: Serving | undefined;
    // From now on, since it ends a process that does not listen to it.
    process.on("SIGHUP", () => serving && reload(serving, log));
    serving = await serve({
      config,
      readConfig: () => configFor(values),
      listen,
      log,
      yolo: values.yolo,
      secrets,
    });
    const { state } = config.paths;
    const damage = few([...missing, ...serving.damage]);
    tell(state, { pid: process.pid, addresses: listen, arguments: asArguments(values), damage }, log);
    await writeOut(`olliesrv ${build.version} listens on ${listen.join(" and ")}\n`).catch(() => {});
    await ended;
    // Unreferenced it would not keep an idle process, but there is none: close() ends with a call of exit.
    setTimeout(() => {
      log.error("not everything could be ended in time");
      process.exit(0);
    }, endLimit);
    leave(state, log);
    await serving.close();
    return 0;
  },
});

/** The log has them all. */
function few(sentences: readonly string[]): string[] {
  if (sentences.length <= fewLimit) return [...sentences];
  return [...sentences.slice(0, fewLimit), `and ${sentences.length - fewLimit} more, see the log`];
}

/** Agents can be reached also where nobody can be told how. */
function tell(state: string, instance: Instance, log: Logger): void {
  try {
    announce(state, instance);
  } catch (error) {
    log.error({ err: error }, "other commands of olliesrv cannot be told where this server listens");
  }
}

function leave(state: string, log: Logger): void {
  try {
    withdraw(state);
  } catch (error) {
    log.error({ err: error }, "olliesrv.pid could not be cleared");
  }
}

/** Listens from the very start, so that a signal during the start ends the server as well. */
function untilTold(): Promise<void> {
  return new Promise((resolve) => {
    process.on("SIGTERM", () => resolve());
    process.on("SIGINT", () => resolve());
  });
}

/** That something could not be installed is no reason not to serve with what there is. Returns a sentence about it. */
function install({ paths }: Config, log: Logger): string[] {
  const { written, fault } = provideData(paths);
  if (written > 0) log.info({ files: written, folder: paths.config }, "installed shipped files");
  if (!fault) return [];
  log.warn({ err: fault }, "shipped files could not be installed");
  return [fault.message];
}

function reload(serving: Serving, log: Logger): void {
  try {
    serving.reload();
  } catch (error) {
    log.error(`the configuration stays as it was: ${toFault(error).message}`);
  }
}
