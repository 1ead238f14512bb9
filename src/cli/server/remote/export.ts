/** `olliesrv remote export`: the working folder of a session, in one file here. */
import { createHash } from "node:crypto";
import { closeSync, fsyncSync, openSync, renameSync, rmSync, writeSync } from "node:fs";
import { Fault } from "../../../fault.ts";
import type { Locator } from "../../../remote/client/locator.ts";
import { sessionExported } from "../../../remote/protocol/exports.ts";
import { attached } from "../../../remote/protocol/session.ts";
import type { Reached } from "./reach.ts";

export interface Exported {
  file: string;
  bytes: number;
  sha256: string;
  /** Files that are not in it. */
  left: number;
  head?: string;
}

/**
 * The file appears whole, or not at all.
 * @throws CodedFault, Fault
 */
export async function exportSession(
  host: Reached,
  { sessionId, policyHash, envRefHash, epoch }: Locator,
  { format, file }: { format: "tar" | "bundle"; file: string },
): Promise<Exported> {
  const params = { sessionId, policyHash, envRefHash, epoch };
  await host.peer.request("session.attach", params, { schema: attached });
  const part = `${file}.part`;
  const fd = openSync(part, "w", 0o600);
  try {
    const exported = await pieces(host, format, fd);
    fsyncSync(fd);
    renameSync(part, file);
    return { file, ...exported };
  } catch (error) {
    rmSync(part, { force: true });
    throw error;
  } finally {
    closeSync(fd);
  }
}

/** Milliseconds: the first answer comes when the whole has been made there. */
const patience = 10 * 60_000;

async function pieces(host: Reached, format: string, fd: number): Promise<Omit<Exported, "file">> {
  const whole = createHash("sha256");
  let off = 0;
  let which: string | undefined;
  for (;;) {
    const params = { format, off, ...(which !== undefined && { export: which }) };
    const piece = await host.peer.request("session.export", params, {
      schema: sessionExported,
      limit: patience,
    });
    const bytes = Buffer.from(piece.data, "base64");
    if (piece.off !== off || createHash("sha256").update(bytes).digest("hex") !== piece.sha256)
      throw new Fault("io", "a piece of the export is damaged; export again");
    whole.update(bytes);
    for (let done = 0; done < bytes.length; ) done += writeSync(fd, bytes, done);
    off += bytes.length;
    which = piece.export;
    if (!piece.eof) continue;
    const sha256 = whole.digest("hex");
    if (sha256 !== piece.export)
      throw new Fault("io", "the export is not what the host has made; export again");
    return { bytes: off, sha256, left: piece.left, ...(piece.head && { head: piece.head }) };
  }
}
