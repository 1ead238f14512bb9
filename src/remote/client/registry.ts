/** The tools of another host, as it has told of them at the last occasion. */
import type { Tool, ToolRegistry } from "../../tools/tool.ts";
import type { RemoteTools } from "./link.ts";

export function remoteRegistry(told: () => RemoteTools): ToolRegistry {
  return {
    list: () => told().tools as Tool[],
    get: (name) => (told().tools as Tool[]).find((tool) => tool.name === name),
    problems: () => told().problems,
    spec: ({ name, description, schema }) => ({ name, description, schema }),
    close() {},
  };
}
