/** What the commands of `olliesrv remote` print for people. */
import { visible } from "../../../elevate/visible.ts";
import type { SessionSwept } from "../../../remote/protocol/exports.ts";
import type { ListedSession } from "./command.ts";
import type { Known } from "./known.ts";
import type { Step } from "./probe.ts";

export function knownTable(known: readonly Known[]): string {
  if (known.length === 0) return "no session of this state folder has its tools on another host\n";
  return known
    .map(({ session, locator: { sessionId, target, cwd } }) =>
      [sessionId, target, cwd, session === undefined ? "(probe)" : session].map(visible).join("  "),
    )
    .map((line) => `${line}\n`)
    .join("");
}

export function sessionTable(sessions: readonly (ListedSession & { session?: string })[]): string {
  if (sessions.length === 0) return "there is no session\n";
  return sessions
    .map(({ sessionId, state, used, bytes, cwd, session }) =>
      [
        sessionId,
        state.padEnd(8),
        size(bytes).padStart(9),
        used === undefined ? "-" : `used ${age(Date.now() - used)} ago`,
        visible(cwd ?? "-"),
        ...(session === undefined ? [] : [visible(session)]),
      ].join("  "),
    )
    .map((line) => `${line}\n`)
    .join("");
}

export function stepLine({ step, text }: Step): string {
  return `${step.padEnd(9)}  ${visible(text)}\n`;
}

export function sweptText({ sessions, base, freed, problems }: SessionSwept, dry: boolean): string {
  const gone = sessions.filter(({ expired }) => expired !== undefined);
  const lines = [
    ...gone.map(({ sessionId, bytes, expired }) => `${sessionId}  ${size(bytes)}  ${reasons[expired!]}`),
    `${dry ? "would free" : "freed"} ${size(freed)}; programs and tools take ${size(base)}; ${sessions.length - gone.length} sessions stay`,
    ...problems.map(visible),
  ];
  return lines.map((line) => `${line}\n`).join("");
}

const reasons = {
  idle: "nobody has used it for too long",
  old: "it is older than sessions may get",
  damaged: "it is damaged",
};

export function destroyedText({
  sessionId,
  bytes,
  ended,
}: {
  sessionId: string;
  bytes: number;
  ended: number;
}): string {
  const processes = ended === 0 ? "" : `, ${ended} processes ended`;
  return `${sessionId} is gone: ${size(bytes)} freed${processes}\n`;
}

function size(bytes: number | undefined): string {
  if (bytes === undefined) return "-";
  return bytes < 1e6 ? `${Math.ceil(bytes / 1000)} kB` : `${(bytes / 1e6).toFixed(1)} MB`;
}

function age(milliseconds: number): string {
  const minutes = Math.max(0, Math.round(milliseconds / 60_000));
  if (minutes < 120) return `${minutes} min`;
  return minutes < 48 * 60 ? `${Math.round(minutes / 60)} h` : `${Math.round(minutes / 1440)} d`;
}
