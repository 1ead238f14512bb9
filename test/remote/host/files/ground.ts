/** A working folder for tests of files, with something outside that must never be seen. */
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileMethods } from "../../../../src/remote/host/files/methods.ts";
import { Workspace } from "../../../../src/remote/host/files/workspace.ts";
import { fromHard } from "../../../../src/remote/policy/effective.ts";
import type { HardPolicy } from "../../../../src/remote/policy/keys.ts";
import { openPolicy } from "../../../../src/remote/policy/session-policy.ts";

export interface Ground {
  /** Of the working folder. */
  work: string;
  outside: string;
  workspace: Workspace;
  /** As a request: its parameters checked, then run. */
  // biome-ignore lint/suspicious/noExplicitAny: answers are as different as methods, and a test looks at what it expects
  call(method: string, params: Record<string, unknown>): Promise<any>;
  /** The code of the error that it fails with. */
  failing(method: string, params: Record<string, unknown>): Promise<string | undefined>;
  close(): void;
}

export function ground(hard: HardPolicy = {}, kernel = true): Ground {
  const top = mkdtempSync(join(tmpdir(), "ollie-files-"));
  const [work, outside] = [join(top, "work"), join(top, "outside")];
  for (const folder of [work, outside, join(work, "src")]) mkdirSync(folder);
  writeFileSync(join(outside, "secret"), "OUTSIDE");
  writeFileSync(join(work, "src/a.txt"), "one\ntwo\n");
  symlinkSync("../outside", join(work, "away"));
  symlinkSync("../outside/secret", join(work, "up"));
  symlinkSync("src/a.txt", join(work, "near"));
  symlinkSync("src", join(work, "nearby"));
  const policy = openPolicy(fromHard(hard), {}, { home: top, environment: {}, folder: join(top, "session") });
  const workspace = new Workspace(work, policy, kernel);
  const call = async (name: string, params: Record<string, unknown>) => {
    const { schema, run } = fileMethods[name]!;
    return run(workspace, schema.parse(params) as never);
  };
  return {
    work,
    outside,
    workspace,
    call,
    async failing(name, params) {
      try {
        await call(name, params);
      } catch (error) {
        return (error as { code?: string }).code ?? String(error);
      }
      return undefined;
    },
    close() {
      workspace.close();
      rmSync(top, { recursive: true, force: true });
    },
  };
}
