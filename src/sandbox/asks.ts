/** What a project's file asks for beyond what the user's own configs give. */
import { type Right, rights, type SandboxConfig } from "./config.ts";
import { follow } from "./links.ts";
import { bits } from "./places.ts";
import { letsThrough } from "./policy.ts";
import { asksOf } from "./project.ts";
import { type Resolved, type Surroundings, templateValues } from "./resolve.ts";
import { expandTemplates } from "./templates.ts";

/** As a config has them: `filesystem.rw: ~/.docker`. None = the file only narrows, or says what holds anyway. */
export function asksBeyond(config: SandboxConfig, own: Resolved, around: Surroundings): string[] {
  const { network, bestEffort, env } = own.policy;
  const has = (ports: number[]) => (port: number) => network.unrestricted || ports.includes(port);
  const beyond: SandboxConfig = {
    filesystem: Object.fromEntries(
      rights.map((right) => [
        right,
        config.filesystem[right].filter((path) => !isGranted(path, right, own, around)),
      ]),
    ) as SandboxConfig["filesystem"],
    env: config.env.filter((name) => !env.some((given) => letsThrough(given, name))),
    network: {
      unrestricted: config.network.unrestricted && !network.unrestricted,
      bind_tcp: config.network.bind_tcp.filter((port) => !has(network.bind)(port)),
      connect_tcp: config.network.connect_tcp.filter((port) => !has(network.connect)(port)),
      unix: config.network.unix,
    },
    general: { best_effort: config.general.best_effort && !bestEffort },
  };
  return asksOf(beyond);
}

/** What does not exist yet is not granted either: it could come to be anything. */
function isGranted(text: string, right: Right, { grants }: Resolved, around: Surroundings): boolean {
  const { paths } = expandTemplates(text, templateValues(around));
  const wanted = bits[right];
  return (
    paths.length > 0 &&
    paths.every((path) => {
      const found = path.startsWith("/") && follow(path);
      return found && (grants.at(found.real) & wanted) === wanted;
    })
  );
}
