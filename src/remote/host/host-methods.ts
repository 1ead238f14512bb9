/** The methods of a host that need no session: what the bridge answers itself. */
import type { z } from "zod";
import { sessionDestroy, sessionList, sessionSweep } from "../protocol/exports.ts";
import type { Handler } from "../protocol/peer.ts";
import { parsed } from "./params.ts";
import { type Places, sessionFolder } from "./places.ts";
import { readSession, sessionIds, usedToolSets } from "./session-record.ts";
import { ToolStore, toolSchemas } from "./tools/methods.ts";

export function hostMethods(places: Places): Record<string, Handler> {
  return {
    "session.list": (params) => listed(places, parsed("session.list", sessionList, params)),
    // Loaded when they are asked for: a hello needs none of it.
    "session.destroy": async (params) => {
      const { destroySession } = await import("./lifecycle/destroy.ts");
      return destroySession(places.root, parsed("session.destroy", sessionDestroy, params));
    },
    "session.sweep": async (params) => {
      const { sweep } = await import("./lifecycle/sweep.ts");
      return sweep(places, parsed("session.sweep", sessionSweep, params));
    },
    ...toolMethods(places),
  };
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

async function listed({ root }: Places, { sizes }: z.infer<typeof sessionList>): Promise<object[]> {
  const { bytesBelow } = await import("./lifecycle/sizes.ts");
  const all = sessionIds(root).map(async (sessionId) => {
    const bytes = sizes ? await bytesBelow(sessionFolder(root, sessionId)) : undefined;
    try {
      const { client, created, used, cwd, sealed } = readSession(root, sessionId);
      return { sessionId, client, created, used, cwd, state: sealed ? "sealed" : "active", bytes };
    } catch {
      return { sessionId, state: "damaged", bytes };
    }
  });
  return Promise.all(all);
}
