/** A session's folder on a host that is this machine, and the engine that runs its operations. */
import { chmodSync, mkdirSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { createOperations } from "../../../../src/remote/host/operations.ts";
import type { Operations, OperationsGround } from "../../../../src/remote/host/ops/engine.ts";
import { fromHard } from "../../../../src/remote/policy/effective.ts";
import { type HardPolicy, hardPolicy } from "../../../../src/remote/policy/keys.ts";
import { openPolicy } from "../../../../src/remote/policy/session-policy.ts";
import { opHash } from "../../../../src/remote/protocol/hash.ts";
import type { OpOutput, OpReport, OpStart, Step } from "../../../../src/remote/protocol/operation.ts";
import type { SessionSettings } from "../../../../src/remote/protocol/session.ts";

export const toolsHash = "ab".repeat(32);

export class Host {
  /** What is told to whoever is attached. */
  readonly outputs: OpOutput[] = [];
  readonly exits: OpReport[] = [];
  readonly log: string[] = [];
  readonly key = new Uint8Array(32).fill(7);
  /** Called at each notification. */
  onNotify: () => void = () => {};
  settings: SessionSettings = { env: {}, sandboxes: {}, approved: [], toolsHash: "" };
  hard: HardPolicy = {};
  cwd: string;

  /** @param top of an earlier one: its session goes on */
  constructor(readonly top = realpathSync(mkdtempSync(join(tmpdir(), "ollie-host-")))) {
    this.cwd = join(top, "work");
    for (const folder of [this.cwd, this.folder]) mkdirSync(folder, { recursive: true });
  }

  get folder(): string {
    return join(this.top, "root/sessions/one");
  }

  get ground(): OperationsGround {
    const policy = openPolicy(
      fromHard(hardPolicy.parse(this.hard)),
      {},
      {
        home: join(this.top, "home"),
        environment: process.env,
        folder: this.folder,
      },
    );
    return {
      folder: this.folder,
      sessionId: "one",
      base: join(this.top, "base"),
      root: join(this.top, "root"),
      cwd: this.cwd,
      policy,
      key: this.key,
      settings: () => this.settings,
      sockets: [join(this.top, "run/ollie-remote/one.sock")],
      notify: (method: string, params: unknown) => {
        if (method === "output") this.outputs.push(params as OpOutput);
        else this.exits.push(params as OpReport);
        this.onNotify();
      },
      log: (sentence: string) => this.log.push(sentence),
    };
  }

  open(): Promise<Operations> {
    return createOperations(this.ground);
  }

  /** A tool as a client would have brought it. */
  tool(name: string, script: string, meta: object = {}): void {
    const folder = join(this.top, "base/tools", toolsHash, "0");
    this.settings = { ...this.settings, toolsHash };
    this.file(join(folder, `${name}.meta`), JSON.stringify({ description: name, ...meta }));
    chmodSync(this.file(join(folder, name), `#!/bin/sh\n${script}\n`), 0o755);
  }

  /** What is lacking of its folders is made. */
  file(path: string, text: string): string {
    const full = join(this.top, path.startsWith(this.top) ? path.slice(this.top.length) : path);
    mkdirSync(dirname(full), { recursive: true });
    writeFileSync(full, text);
    return full;
  }

  remove(): void {
    rmSync(this.top, { recursive: true, force: true });
  }
}

export type Asked = Partial<Omit<OpStart, "steps" | "hash">>;

/** An operation of these steps, under an id of its own unless one is given. */
export function request(steps: Step[], more: Asked = {}): OpStart {
  const asked = { steps, sandbox: "", detach: false, ...more };
  return { opId: Bun.randomUUIDv7(), hash: opHash(asked), ...asked };
}

export const sh = (code: string): Step => ({ code, lang: "sh" });

export const call = (tool: string, args: Record<string, unknown> = {}): Step => ({
  tool,
  args,
  callId: "c1",
  agent: "main",
  session: "s",
  sandbox: "",
});

/** Waits for the end, however long it takes; the test has its own limit. */
export async function ended(operations: Operations, opId: string): Promise<OpReport> {
  for (;;) {
    const report = await operations.wait({ opId, limit: 25 }, new AbortController().signal);
    if (report.ended !== undefined) return report;
  }
}

export async function run(operations: Operations, asked: OpStart): Promise<OpReport> {
  await operations.start(asked);
  return ended(operations, asked.opId);
}
