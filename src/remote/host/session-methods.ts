/** The methods that the daemon of a session answers once it is attached. */
import type { z } from "zod";
import { surveyProject } from "../../tools/project.ts";
import { coded } from "../protocol/errors.ts";
import { sessionExport } from "../protocol/exports.ts";
import { opHash } from "../protocol/hash.ts";
import * as wire from "../protocol/operation.ts";
import type { Handler } from "../protocol/peer.ts";
import { projectAsk, sessionSettings } from "../protocol/session.ts";
import type { Daemon } from "./daemon.ts";
import { Exports } from "./export/export.ts";
import { fileMethods } from "./files/methods.ts";
import { fromHome } from "./home.ts";
import { parsed } from "./params.ts";

/** @param touch says that somebody uses the session */
export function sessionMethods(daemon: Daemon, touch: () => void): Record<string, Handler> {
  const { operations } = daemon;
  const exports = new Exports(daemon.folder, daemon.record.cwd, daemon.workspace);
  const on = <S extends z.ZodType>(
    method: string,
    schema: S,
    work: (params: z.infer<S>, signal: AbortSignal) => unknown,
  ): [string, Handler] => [
    method,
    (params, { signal }) => {
      touch();
      return work(parsed(method, schema, params), signal);
    },
  ];
  const files = Object.entries(fileMethods).map(([method, { schema, writes, run }]) =>
    on(method, schema, (params) => {
      if (writes) refuseSealed(daemon);
      return run(daemon.workspace, params as never);
    }),
  );
  const plain = (method: string, work: () => unknown): [string, Handler] => [
    method,
    () => {
      touch();
      return work();
    },
  ];
  return Object.fromEntries([
    ...files,
    plain("ping", () => ({})),
    plain("session.info", () => daemon.report()),
    plain("session.renew", () => daemon.renew()),
    plain("session.seal", () => daemon.seal()),
    plain("session.upgrade", () => upgrade(daemon)),
    on("session.export", sessionExport, (request) => exports.piece(request)),
    on("session.configure", sessionSettings, (settings) => {
      daemon.configure(settings);
      return operations.tools();
    }),
    plain("tools.list", () => operations.tools()),
    plain("op.list", () => operations.list()),
    on("op.start", wire.opStart, (request) => {
      refuseSealed(daemon);
      return operations.start(request);
    }),
    on("op.get", wire.opName, ({ opId }) => operations.get(opId)),
    on("op.wait", wire.opWait, (request, signal) => operations.wait(request, signal)),
    on("op.cancel", wire.opCancel, (request) => operations.cancel(request)),
    on("op.output", wire.opRange, (request) => operations.output(request)),
    on("op.follow", wire.opFollow, (request) => operations.follow(request)),
    on("op.ack", wire.opAck, (request) => operations.ack(request)),
    on("op.secret", wire.opSecret, ({ opId, secret }) =>
      operations.secret(opId, Buffer.from(secret, "base64")),
    ),
    on("sudo.probe", wire.sudoProbe, ({ opId }) => operations.sudoProbe(opId)),
    on("sudo.check", wire.sudoProbe, ({ opId }) => operations.sudoCheck(opId)),
    on("execute", wire.execute, (request, signal) => execute(daemon, request, signal)),
    on("project.survey", projectAsk, ({ cwd }) =>
      surveyProject(cwd === undefined ? daemon.record.cwd : fromHome(cwd)),
    ),
  ]);
}

function refuseSealed({ record, sessionId }: Daemon): void {
  if (record.sealed)
    throw coded(
      "session.sealed",
      `session ${sessionId} is sealed: it can be read and exported, and runs nothing more`,
    );
}

/** The next bridge starts a daemon of its own program. */
function upgrade(daemon: Daemon): object {
  if (daemon.operations.running > 0)
    throw coded("session.busy", "operations run; the daemon can be replaced when they have ended", {
      retry: true,
    });
  setTimeout(() => void daemon.stop(), 50);
  return {};
}

async function execute(
  { operations }: Daemon,
  { steps, timeout, sandbox, opId = crypto.randomUUID() }: z.infer<typeof wire.execute>,
  signal: AbortSignal,
): Promise<z.infer<typeof wire.executed>> {
  const request = { steps, timeout, sandbox, detach: false };
  await operations.start({ opId, hash: opHash(request), ...request });
  operations.follow({ opId, from: {} });
  for (;;) {
    const report = await operations.wait({ opId, limit: 25 }, signal);
    if (report.ended === undefined) continue;
    const exit_code = report.code ?? (report.status === "exited" ? 0 : 128);
    return { output: report.output ?? report.outcome?.text ?? "", exit_code };
  }
}
