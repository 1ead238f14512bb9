/** Sessions on other hosts that are known here: those of the sessions in the state folder, and those that a probe has made. */
import { mkdirSync, readdirSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { type Locator, locator } from "../../../remote/client/locator.ts";

export interface Known {
  locator: Locator;
  /** Name of ollie's own session; undefined: a probe's. */
  session?: string;
}

export function knownSessions(state: string): Known[] {
  const sessions = join(state, "sessions");
  const stored = names(sessions).flatMap((name) => {
    const json = readJson(join(sessions, name, "session.json")) as { name?: unknown; locator?: unknown };
    const found = locator.safeParse(json?.locator);
    return found.success
      ? [{ locator: found.data, session: typeof json.name === "string" ? json.name : name }]
      : [];
  });
  const probes = names(probesFolder(state)).flatMap((name) => {
    const found = locator.safeParse(readJson(join(probesFolder(state), name)));
    return found.success ? [{ locator: found.data }] : [];
  });
  return [...stored, ...probes];
}

/** A later probe may want to go on with the session. */
export function keepProbe(state: string, kept: Locator): void {
  const folder = probesFolder(state);
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  const file = join(folder, `${kept.sessionId}.json`);
  writeFileSync(`${file}.new`, `${JSON.stringify(kept)}\n`, { mode: 0o600 });
  renameSync(`${file}.new`, file);
}

function probesFolder(state: string): string {
  return join(state, "remote-probes");
}

function names(folder: string): string[] {
  try {
    return readdirSync(folder).sort();
  } catch {
    return [];
  }
}

function readJson(file: string): unknown {
  try {
    return JSON.parse(readFileSync(file, "utf8"));
  } catch {
    return undefined;
  }
}
