/** Which configs hold for a session: the shipped default, `default.yaml` of the config folder, then `NAME.yaml` there. */
import { readdirSync } from "node:fs";
import { basename, join } from "node:path";
import { Fault } from "../fault.ts";
import { type Layer, readLayer, shippedDefault } from "./config.ts";

/** Folder of sandbox configs in the config folder. */
function sandboxFolder(config: string): string {
  return join(config, "sandbox");
}

export function sandboxFile(config: string, name: string): string {
  return join(sandboxFolder(config), `${name}.yaml`);
}

/** Names of the configs, sorted; `default` is always among them. */
export function sandboxNames(config: string): string[] {
  const names = new Set(["default"]);
  for (const entry of list(sandboxFolder(config)))
    if (entry.endsWith(".yaml") && !entry.startsWith(".")) names.add(entry.slice(0, -".yaml".length));
  return [...names].sort();
}

/**
 * From the weakest to the strongest. One with `extends: false` lets nothing before it count.
 * @throws Fault "missing" that lists the configs there are, "invalid" that names file and key
 */
export function readLayers(config: string, name: string): Layer[] {
  const layers = [shippedDefault()];
  for (const one of new Set(["default", name])) {
    const layer = basename(one) === one ? readLayer(sandboxFile(config, one)) : undefined;
    if (layer) layers.push(layer);
    else if (one !== "default") throw unknown(config, name);
  }
  const start = layers.findLastIndex((layer) => layer.config.extends === false);
  return layers.slice(Math.max(start, 0));
}

function unknown(config: string, name: string): Fault {
  return new Fault("missing", `no sandbox config ${name}: there are ${sandboxNames(config).join(", ")}`);
}

function list(folder: string): string[] {
  try {
    return readdirSync(folder);
  } catch {
    return []; // nobody has made a config
  }
}
