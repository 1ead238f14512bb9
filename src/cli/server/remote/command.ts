/** `olliesrv remote`: sessions on other hosts, without a server. */
import { resolve } from "node:path";
import { z } from "zod";
import type { Config } from "../../../config/config.ts";
import { Fault } from "../../../fault.ts";
import { sessionDestroyed, sessionSwept } from "../../../remote/protocol/exports.ts";
import { command, type Options, type Values, WrongUse } from "../../program.ts";
import { writeOut } from "../../stdio.ts";
import { configFor, whichOptions } from "../options.ts";
import { exportSession } from "./export.ts";
import { knownSessions } from "./known.ts";
import { probe } from "./probe.ts";
import { type Means, reach } from "./reach.ts";
import { destroyedText, knownTable, sessionTable, stepLine, sweptText } from "./text.ts";

const options = {
  json: { type: "boolean", help: "print JSON" },
  "session-id": { type: "string", value: "ID", help: "probe: go on with the session of an earlier probe" },
  format: {
    type: "string",
    value: "tar|bundle",
    help: "export: the files, or the commits of the repository",
  },
  output: {
    type: "string",
    short: "o",
    value: "FILE",
    help: "export: where to, instead of ID.tar.zst or ID.bundle",
  },
  dry: { type: "boolean", help: "gc: say what would go" },
  ...whichOptions,
} as const satisfies Options;

interface Call {
  config: Config;
  values: Values<typeof options>;
  /** Behind the action: the target, and what it takes. */
  words: string[];
  means?: Means;
  print(text: string, json: unknown): Promise<void>;
}

interface Action {
  /** Words that it takes. */
  usage: string;
  words: [number, number];
  run(call: Call): Promise<void>;
}

export const listedSession = z.object({
  sessionId: z.string(),
  state: z.string(),
  cwd: z.string().optional(),
  /** Milliseconds since 1970. */
  created: z.number().optional(),
  used: z.number().optional(),
  bytes: z.number().optional(),
});
export type ListedSession = z.infer<typeof listedSession>;

/** Milliseconds: counting the bytes of large folders takes its time. */
const patience = 120_000;

const actions: Record<string, Action> = {
  ls: { usage: "[TARGET]", words: [0, 1], run: ls },
  probe: { usage: "TARGET", words: [1, 1], run: runProbe },
  gc: { usage: "TARGET", words: [1, 1], run: gc },
  export: { usage: "TARGET ID", words: [2, 2], run: exportTo },
  destroy: { usage: "TARGET ID", words: [2, 2], run: destroy },
};

export const remote = command({
  usage: "ls|probe|gc|export|destroy [TARGET [ID]] [OPTIONS]",
  about:
    "ls lists the sessions on TARGET, or without it those of this state folder on all hosts. probe tries step by step whether TARGET can be\n" +
    "worked on, with a session of its own. gc removes what is past its time there. export brings the working folder of a session here.\n" +
    "destroy removes a session there with all that is its own; its ID has to be given in full. TARGET is what remote= takes: a name of\n" +
    "remotes.yaml, or [user@]host[:port]. No server has to run.",
  options,
  words: [1, 3],
  run: ({ values, words }) => runRemote(values, words),
});

/** @param means in the place of SSH, for tests */
export async function runRemote(
  values: Values<typeof options>,
  words: string[],
  means?: Means,
): Promise<number> {
  const [name, ...rest] = words;
  const action = Object.hasOwn(actions, name!) ? actions[name!] : undefined;
  if (!action) throw new WrongUse(`remote ${name}: one of ${Object.keys(actions).join(", ")} is right`);
  const [least, most] = action.words;
  if (rest.length < least || rest.length > most)
    throw new WrongUse(`expected olliesrv remote ${name} ${action.usage}`);
  const print = (text: string, json: unknown) =>
    writeOut(values.json ? `${JSON.stringify(json, null, 2)}\n` : text);
  await action.run({ config: configFor(values), values, words: rest, means, print });
  return 0;
}

async function ls({ config, words: [target], means, print }: Call): Promise<void> {
  const known = knownSessions(config.paths.state);
  if (target === undefined) {
    // Keys stay where they are.
    const shown = known.map(({ session, locator: { key: _, ...rest } }) => ({ session, ...rest }));
    await print(knownTable(known), shown);
    return;
  }
  const host = await reach(config, target, means);
  try {
    const schema = z.array(listedSession);
    const listed = await host.peer.request("session.list", { sizes: true }, { schema, limit: patience });
    const names = new Map(known.map(({ session, locator }) => [locator.sessionId, session]));
    const sessions = listed.map((one) => ({ ...one, session: names.get(one.sessionId) }));
    await print(sessionTable(sessions), sessions);
  } finally {
    host.close();
  }
}

async function runProbe({ config, values, words: [target], means, print }: Call): Promise<void> {
  const host = await reach(config, target!, means);
  try {
    const about = { state: config.paths.state, target: target!, sessionId: values["session-id"] };
    const steps = probe(host, about);
    const done: object[] = [];
    for (let next = await steps.next(); ; next = await steps.next()) {
      if (next.done) {
        const { sessionId } = next.value;
        await print(`session ${sessionId} stays there until it is destroyed or past its time\n`, {
          sessionId,
          steps: done,
        });
        return;
      }
      done.push(next.value);
      if (!values.json) await writeOut(stepLine(next.value));
    }
  } finally {
    host.close();
  }
}

async function gc({ config, values, words: [target], means, print }: Call): Promise<void> {
  const host = await reach(config, target!, means);
  try {
    const dry = values.dry ?? false;
    const swept = await host.peer.request(
      "session.sweep",
      { dry },
      { schema: sessionSwept, limit: patience },
    );
    await print(sweptText(swept, dry), swept);
  } finally {
    host.close();
  }
}

async function exportTo({ config, values, words: [target, id], means, print }: Call): Promise<void> {
  const format = values.format ?? "tar";
  if (format !== "tar" && format !== "bundle")
    throw new WrongUse(`--format ${format}: tar or bundle is right`);
  const known = knownSessions(config.paths.state).find(({ locator }) => locator.sessionId === id);
  if (!known)
    throw new Fault(
      "missing",
      `${id} is no session of this state folder; olliesrv remote ls lists those that are`,
    );
  const file = resolve(values.output ?? `${id}.${format === "tar" ? "tar.zst" : "bundle"}`);
  const host = await reach(config, target!, means);
  try {
    const exported = await exportSession(host, known.locator, { format, file });
    const left = exported.left > 0 ? `, ${exported.left} files are not in it` : "";
    await print(`${exported.file}: ${exported.bytes} bytes, SHA-256 ${exported.sha256}${left}\n`, exported);
  } finally {
    host.close();
  }
}

async function destroy({ config, words: [target, id], means, print }: Call): Promise<void> {
  if (!/^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/.test(id!))
    throw new WrongUse(
      `${id} is no whole session ID: olliesrv remote ls ${target} lists them, and it has to be given in full`,
    );
  const host = await reach(config, target!, means);
  try {
    const params = { sessionId: id, confirm: id };
    const gone = await host.peer.request("session.destroy", params, {
      schema: sessionDestroyed,
      limit: patience,
    });
    await print(destroyedText(gone), gone);
  } finally {
    host.close();
  }
}
