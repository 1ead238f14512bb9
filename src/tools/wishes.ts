/**
 * What a call wants beyond being run. A tool's sidecar says some of it; the rest are arguments with a meaning to ollie, which count only
 * where the tool's own schema has them: `timeout`, `elevated`, `detach`, `notify`.
 */
import type { Tool } from "./tool.ts";

export interface Wishes {
  /** Outside of the sandbox, after somebody has allowed it. */
  elevated: boolean;
  /** As root; goes with `elevated`. */
  sudo: boolean;
  /** As a background job. */
  detach: boolean;
  /** The agent is to be told of the job's end by a prompt. */
  notify: boolean;
  /** Seconds until it is ended. */
  timeout: number;
}

/** Seconds that a call may ask for with an argument `timeout`; a tool's own sidecar may say more. */
const timeoutCap = 3600;

export function wishesOf(tool: Tool, args: Record<string, unknown>): Wishes {
  const asked = (name: string) => (understands(tool, name) ? args[name] : undefined);
  const seconds = asked("timeout");
  return {
    elevated: tool.elevated || tool.sudo || asked("elevated") === true,
    sudo: tool.sudo,
    detach: asked("detach") === true,
    notify: asked("notify") === true,
    timeout:
      typeof seconds === "number" && seconds > 0
        ? Math.min(seconds, Math.max(timeoutCap, tool.timeout))
        : tool.timeout,
  };
}

/** Whether a tool's schema has an argument of that name. */
export function understands(tool: Tool, name: string): boolean {
  return name in ((tool.schema.properties ?? {}) as object);
}
