/** What the last daemon has found out about sandboxes on this host, so that a hello need not find it out again. */
import { readFileSync, renameSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { HostHello } from "../protocol/hello.ts";

type Sandbox = HostHello["sandbox"];

/** It holds for one kernel and one program. */
interface Known {
  boot: string;
  digest: string;
  sandbox: Sandbox;
}

const unknown: Sandbox = { state: "unknown", abi: 0, enforced: [], missing: [] };

export function knownSandbox(root: string, boot: string, digest: string): Sandbox {
  try {
    const known = JSON.parse(readFileSync(fileOf(root), "utf8")) as Known;
    return known.boot === boot && known.digest === digest ? known.sandbox : unknown;
  } catch {
    return unknown;
  }
}

export function rememberSandbox(root: string, known: Known): void {
  const file = fileOf(root);
  try {
    writeFileSync(`${file}.${process.pid}`, JSON.stringify(known), { mode: 0o600 });
    renameSync(`${file}.${process.pid}`, file);
  } catch {
    // It is only for the next hello.
  }
}

function fileOf(root: string): string {
  return join(root, "confinement.json");
}
