import { setDefaultTimeout } from "bun:test";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Secrets } from "../../src/config/secrets.ts";
import { callTool } from "../../src/tools/dispatch.ts";
import { prepare } from "../../src/tools/prepare.ts";
import { createRegistry } from "../../src/tools/registry.ts";
import type { CallContext, CallOutcome, Tool } from "../../src/tools/tool.ts";

// Many of these tests start dozens of processes, on machines that have other things to do.
setDefaultTimeout(60_000);

export const shippedTools = join(import.meta.dir, "../../data/tools");

/** A folder that is gone when the test process ends. */
export function folder(): string {
  const path = mkdtempSync(join(tmpdir(), "ollie-tools-"));
  process.on("exit", () => rmSync(path, { recursive: true, force: true }));
  return path;
}

/** Writes a tool: its program (0755) and its sidecar. */
export function writeTool(
  dir: string,
  name: string,
  program: string,
  meta: Record<string, unknown> = {},
): void {
  writeFileSync(join(dir, name), program, { mode: 0o755 });
  writeFileSync(join(dir, `${name}.meta`), JSON.stringify({ description: `does ${name}`, ...meta }));
}

/** A tool that exists only on paper, for what does not run it. */
export function toolWith(schema: Record<string, unknown>, name = "tool"): Tool {
  return {
    name,
    description: "",
    documentation: "",
    schema,
    path: "/nowhere",
    folder: "/",
    tier: "hot",
    concurrency: "write",
    readOnly: false,
    elevated: false,
    sudo: false,
    timeout: 60,
    remote: true,
  };
}

/** A session of one agent in a folder of its own, with the tools of the given folders. */
export class Workshop {
  readonly dir = folder();
  readonly cwd = join(this.dir, "work");
  readonly ctx: CallContext;

  constructor(
    private readonly toolsPath = shippedTools,
    more: Partial<CallContext> = {},
  ) {
    mkdirSync(this.cwd);
    this.ctx = {
      session: "s",
      agent: "a",
      cwd: this.cwd,
      env: {},
      secrets: new Secrets(),
      tmp: join(this.dir, "tmp"),
      address: () => ({ addr: "" }),
      cage: async () => undefined,
      serviceCage: async () => undefined,
      toolsPath,
      memoryPath: join(this.dir, "memory"),
      skillsPath: join(this.dir, "skills"),
      ...more,
    };
  }

  /** Calls a tool the way a model does; another agent's name makes it that agent's call. */
  call(name: string, args: Record<string, unknown> | string, agent = this.ctx.agent): Promise<CallOutcome> {
    const text = typeof args === "string" ? args : JSON.stringify(args);
    const id = `c${++calls}`;
    const prepared = prepare({ id, name, args: text }, createRegistry(this.toolsPath).list());
    return callTool(prepared, { ...this.ctx, agent }, id, new AbortController().signal);
  }

  /** The same, for calls that must succeed: what the tool printed, without the status line. */
  async ok(name: string, args: Record<string, unknown>, agent?: string): Promise<string> {
    const { ok, text } = await this.call(name, args, agent);
    if (!ok) throw new Error(`${name} failed: ${text}`);
    return text.replace(/\n\[unsandboxed\]$/, "");
  }

  /** The same, for calls that must fail. */
  async no(name: string, args: Record<string, unknown>, agent?: string): Promise<string> {
    const { ok, text } = await this.call(name, args, agent);
    if (ok) throw new Error(`${name} succeeded: ${text}`);
    return text;
  }

  path(name: string): string {
    return join(this.cwd, name);
  }

  write(name: string, content: string | Uint8Array): string {
    const path = this.path(name);
    mkdirSync(join(path, ".."), { recursive: true });
    writeFileSync(path, content);
    return path;
  }
}

let calls = 0;
