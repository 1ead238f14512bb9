/** The hands of this machine. */
import { callTool } from "./dispatch.ts";
import type { Hands } from "./hands.ts";
import { surveyProject } from "./project.ts";
import type { ToolRegistry } from "./tool.ts";

/** @param registry asked each time, since `reload` puts another one in its place */
export function handsHere(registry: () => ToolRegistry): Hands {
  return {
    get registry() {
      return registry();
    },
    ready: async () => {},
    call: (prepared, ctx, { callId }, signal, listener) =>
      callTool(prepared, ctx, callId, signal, (text) => listener.output(text)),
    survey: async (cwd) => surveyProject(cwd),
  };
}
