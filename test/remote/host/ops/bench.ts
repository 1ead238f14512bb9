/** A session's operations in a temporary folder, without a daemon around them. */
import { mkdirSync, mkdtempSync, realpathSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createOperations } from "../../../../src/remote/host/operations.ts";
import type { Operations } from "../../../../src/remote/host/ops/engine.ts";
import { fromHard, narrow } from "../../../../src/remote/policy/effective.ts";
import type { ClientPolicy, HardPolicy } from "../../../../src/remote/policy/keys.ts";
import { openPolicy } from "../../../../src/remote/policy/session-policy.ts";
import { opHash } from "../../../../src/remote/protocol/hash.ts";
import type { OpOutput, OpReport, OpStart } from "../../../../src/remote/protocol/operation.ts";
import type { SessionSettings } from "../../../../src/remote/protocol/session.ts";

export const key = new Uint8Array(32).fill(7);

export interface Bench {
  folder: string;
  cwd: string;
  base: string;
  operations: Operations;
  settings: SessionSettings;
  outputs: OpOutput[];
  exits: OpReport[];
  /** As a new daemon would find it. */
  reopen(): Promise<Operations>;
  close(): Promise<void>;
}

export async function openBench(hard: HardPolicy = {}, client: ClientPolicy = {}): Promise<Bench> {
  const top = realpathSync(mkdtempSync(join(tmpdir(), "ollie-ops-")));
  const [folder, cwd, base] = ["root/sessions/s", "work", "base"].map((name) => join(top, name)) as [
    string,
    string,
    string,
  ];
  for (const made of [folder, cwd, base]) mkdirSync(made, { recursive: true, mode: 0o700 });
  const policy = openPolicy(
    narrow(fromHard(hard), client),
    {},
    { home: top, environment: process.env, folder },
  );
  const bench = {
    folder,
    cwd,
    base,
    settings: { env: {}, sandboxes: {}, approved: [], toolsHash: "" } as SessionSettings,
    outputs: [] as OpOutput[],
    exits: [] as OpReport[],
  };
  const open = () =>
    createOperations({
      folder,
      sessionId: "s",
      base,
      root: join(top, "root"),
      cwd,
      policy,
      key,
      settings: () => bench.settings,
      sockets: [],
      notify: (method: string, params: unknown) => {
        if (method === "output") bench.outputs.push(params as OpOutput);
        else bench.exits.push(params as OpReport);
      },
      log: () => {},
    });
  const whole: Bench = {
    ...bench,
    operations: await open(),
    async reopen() {
      whole.operations = await open();
      return whole.operations;
    },
    async close() {
      await whole.operations.seal();
      await whole.operations.close();
      rmSync(top, { recursive: true, force: true });
    },
  };
  Object.defineProperty(bench, "settings", { get: () => whole.settings });
  return whole;
}

export function requestOf(steps: unknown[], more: Partial<OpStart> = {}): OpStart {
  const request = { steps, sandbox: "", detach: false, ...more } as Omit<OpStart, "opId" | "hash">;
  return { opId: Bun.randomUUIDv7(), hash: opHash(request), ...request };
}

export const sh = (code: string) => ({ code, lang: "sh" as const });

export const never = new AbortController().signal;

export async function ended(operations: Operations, opId: string): Promise<OpReport> {
  for (;;) {
    const report = await operations.wait({ opId, limit: 5 }, never);
    if (report.ended !== undefined) return report;
  }
}

export async function ran(operations: Operations, request: OpStart): Promise<OpReport> {
  await operations.start(request);
  return ended(operations, request.opId);
}
