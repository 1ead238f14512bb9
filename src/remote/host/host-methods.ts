/** The methods of a host that need no session: what the bridge answers itself. */
import type { Handler } from "../protocol/peer.ts";
import type { Places } from "./place.ts";
import { parsed } from "./session-methods.ts";
import { readSession, sessionIds, usedToolSets } from "./session-record.ts";
import { ToolStore, toolSchemas } from "./tools/methods.ts";

export function hostMethods(places: Places): Record<string, Handler> {
  return { "session.list": () => listed(places), ...toolMethods(places) };
}

function toolMethods({ base, root }: Places): Record<string, Handler> {
  let made: ToolStore | undefined;
  // A connection that brings no tools looks at no folder for them.
  const store = () => (made ??= new ToolStore(base, () => usedToolSets(root)));
  const { "tools.manifest": manifest, "blob.put": put, "tools.activate": activate } = toolSchemas;
  return {
    "tools.manifest": (params) => store().manifest(parsed("tools.manifest", manifest, params)),
    "blob.put": (params) => store().put(parsed("blob.put", put, params)),
    "tools.activate": (params) => store().activate(parsed("tools.activate", activate, params)),
  };
}

function listed({ root }: Places): object[] {
  return sessionIds(root).flatMap((sessionId) => {
    try {
      const { client, created, used, cwd, sealed } = readSession(root, sessionId);
      return [{ sessionId, client, created, used, cwd, state: sealed ? "sealed" : "active" }];
    } catch {
      return [{ sessionId, state: "damaged" }];
    }
  });
}
