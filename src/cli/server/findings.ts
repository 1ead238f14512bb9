/** What `doctor` looks at, one check a function. */
import { accessSync, constants, existsSync } from "node:fs";
import { BackendRegistry } from "../../backends/registry.ts";
import { listAgents } from "../../config/agents.ts";
import type { Config } from "../../config/config.ts";
import { shippedFolder, tilde } from "../../config/paths.ts";
import { toFault } from "../../fault.ts";
import { SandboxConfigs } from "../../sandbox/configs.ts";
import { groundOf } from "../../session/ground.ts";
import { createRegistry } from "../../tools/registry.ts";
import type { Values } from "../program.ts";
import { confinement, existing } from "./confinement.ts";
import { findInstance } from "./instance.ts";
import { configFor, type whichOptions } from "./options.ts";
import { permissions } from "./permissions.ts";
import { remoteFindings } from "./remote/findings.ts";

export interface Finding {
  about: string;
  status: "ok" | "warn" | "fail";
  text: string;
  /** What to do about it. */
  advice?: string;
}

/** Milliseconds for a backend to answer. */
const answerLimit = 10_000;

export async function* findings(values: Values<typeof whichOptions>): AsyncGenerator<Finding> {
  let config: Config;
  try {
    config = configFor(values);
  } catch (error) {
    yield {
      about: "config",
      status: "fail",
      text: toFault(error).message,
      advice: "correct that first; nothing else was checked",
    };
    return;
  }
  yield* configuration(config);
  yield* permissions(config);
  yield server(config);
  yield* start(config);
  yield state(config);
  yield* agents(config);
  yield* tools(config);
  yield* sandboxConfigs(config);
  yield* await backends(config);
  yield confinement(config);
  yield fuse();
  yield* remoteFindings(config);
  yield program("tmux", "o tui shows chat and prompt side by side", "install tmux");
  yield program("ssh", "remote addresses and hosts can be reached", "install an ssh client");
}

function* configuration({ paths, warnings }: Config): Generator<Finding> {
  const folder = tilde(paths.config, paths.home);
  const instead = shippedFolder(paths.state);
  if (existsSync(instead)) {
    yield {
      about: "config",
      status: "warn",
      text: `${folder} could not be written`,
      advice: `agents, prompts and tools are those in ${tilde(instead, paths.home)}`,
    };
  } else if (!existsSync(paths.config)) {
    yield {
      about: "config",
      status: "warn",
      text: `there is no ${folder} yet`,
      advice: "olliesrv init, or the first start, makes it",
    };
  } else yield { about: "config", status: "ok", text: folder };
  for (const warning of warnings) yield { about: "config", status: "warn", text: warning };
}

function server({ paths }: Config): Finding {
  const running = findInstance(paths.state);
  return running
    ? {
        about: "server",
        status: "ok",
        text: `runs as process ${running.pid} on ${running.addresses.join(" ")}`,
      }
    : { about: "server", status: "ok", text: "does not run", advice: "olliesrv start" };
}

/** What the server that runs has told at its start. */
function* start(config: Config): Generator<Finding> {
  for (const text of findInstance(config.paths.state)?.damage ?? [])
    yield { about: "start", status: "warn", text };
}

/** A folder that does not exist will be made in the nearest one that does. */
function state({ paths }: Config): Finding {
  const folder = existing(paths.state);
  try {
    accessSync(folder, constants.W_OK | constants.X_OK);
    return { about: "state", status: "ok", text: tilde(paths.state, paths.home) };
  } catch {
    return {
      about: "state",
      status: "fail",
      text: `${folder} cannot be written`,
      advice: "make it writable, or set OLLIE_STATE_PATH or --state",
    };
  }
}

function* agents({ paths }: Config): Generator<Finding> {
  const all = listAgents(paths.agents);
  for (const { broken } of all) if (broken) yield { about: "agents", status: "fail", text: broken };
  const names = all.filter(({ broken }) => !broken).map(({ name }) => name);
  if (names.includes("default")) yield { about: "agents", status: "ok", text: names.join(" ") };
  else
    yield {
      about: "agents",
      status: "fail",
      text: "there is no agent called default",
      advice: "olliesrv init --force",
    };
}

function* tools({ paths }: Config): Generator<Finding> {
  const registry = createRegistry(paths.tools.join(":"));
  try {
    for (const { file, reason } of registry.problems())
      yield { about: "tools", status: "warn", text: `${file}: ${reason}` };
    const names = registry.list().map(({ name }) => name);
    if (names.length > 0) yield { about: "tools", status: "ok", text: names.join(" ") };
    else
      yield {
        about: "tools",
        status: "warn",
        text: `none in ${paths.tools.join(":")}`,
        advice: "olliesrv init",
      };
  } finally {
    registry.close();
  }
}

/** Each with what it says in vain. */
function* sandboxConfigs(config: Config): Generator<Finding> {
  const { home } = config.paths;
  const configs = new SandboxConfigs(groundOf(config));
  const right: string[] = [];
  // One in default.yaml is one in all of them.
  const mistakes = new Set<string>();
  const warnings = new Set<string>();
  for (const name of configs.names()) {
    try {
      configs.check(name);
      right.push(name);
      if (existsSync(home)) for (const warning of configs.survey(home, name).warnings) warnings.add(warning);
    } catch (error) {
      mistakes.add(toFault(error).message);
    }
  }
  for (const text of mistakes) yield { about: "sandbox", status: "fail", text };
  for (const text of warnings) yield { about: "sandbox", status: "warn", text };
  if (right.length > 0) yield { about: "sandbox", status: "ok", text: `configs: ${right.join(" ")}` };
}

/** Only the default one has to answer: the others may be machines that are off today. */
async function backends({ environment }: Config): Promise<Finding[]> {
  const registry = new BackendRegistry(environment);
  try {
    return await Promise.all(
      registry.names().map(async (name): Promise<Finding> => {
        if (name === "script") {
          return {
            about: "backend",
            status: "warn",
            text: "script: a rehearsal without a model",
            advice: "set OLLIE_BACKEND and what it needs in the env file",
          };
        }
        try {
          const models = await registry.get(name).models(AbortSignal.timeout(answerLimit));
          return { about: "backend", status: "ok", text: `${name}: ${models.length} models` };
        } catch (error) {
          const status = name === registry.defaultName ? "fail" : "warn";
          return { about: "backend", status, text: `${name}: ${toFault(error).message}` };
        }
      }),
    );
  } finally {
    registry.close();
  }
}

function fuse(): Finding {
  const missing = [
    ...(existsSync("/dev/fuse") ? [] : ["/dev/fuse"]),
    ...(Bun.which("fusermount3") || Bun.which("fusermount") ? [] : ["fusermount3"]),
  ];
  if (missing.length === 0)
    return {
      about: "fuse",
      status: "ok",
      text: "the tree can be mounted by programs that speak 9P and FUSE",
    };
  return {
    about: "fuse",
    status: "warn",
    text: `no ${missing.join(", no ")}`,
    advice: "install fuse3; ollie-9p and o do without",
  };
}

function program(name: string, use: string, advice: string): Finding {
  const path = Bun.which(name);
  return path
    ? { about: name, status: "ok", text: use }
    : { about: name, status: "warn", text: "not on the PATH", advice };
}
