/** What olliesrv and a broker say to each other: NDJSON, one JSON object a line, in UTF-8. doc/ELEVATION.md describes it. */
import { z } from "zod";
import { Fault } from "../fault.ts";
import type { Answer, Question } from "./question.ts";

/** Bytes of one line. A command has no limit of its own, but a model's answer has. */
export const lineLimit = 8 * 1024 * 1024;

const id = z.string().min(1);

/** olliesrv asks. Fields that a broker does not know it ignores. */
export const questionLine = z.object({
  id,
  kind: z.enum(["approval", "password"]).default("approval"),
  session: z.string(),
  agent: z.string(),
  tool: z.string(),
  command: z.string(),
  cwd: z.string(),
  host: z.string(),
  again: z.boolean().optional(),
});

/** olliesrv tells that the question is settled and nobody's answer is wanted any more. */
export const decidedLine = z.object({ id, decided: z.enum(["allow", "deny", "withdrawn"]) });

/** A broker that fills in one form for both writes `null`, or an empty text, for what does not belong to its answer. */
const scope = z
  .enum(["once", "session", ""])
  .nullish()
  .transform((text) => text || "once");
const reason = z
  .string()
  .nullish()
  .transform((text) => text ?? "");

const answerLine = z.union([
  z.object({ id, decision: z.literal("allow"), scope }),
  z.object({ id, decision: z.literal("deny"), reason }),
  z.object({ id, password: z.string() }),
]);

/** A broker's line. @throws Fault "invalid" that says what a line looks like */
export function parseAnswer(line: string): { id: string; answer: Answer } {
  let json: unknown;
  try {
    json = JSON.parse(line);
  } catch {
    // What stands in it is not told: it may hold a password.
    throw new Fault("invalid", "the line is not JSON");
  }
  const parsed = answerLine.safeParse(json);
  if (!parsed.success)
    throw new Fault(
      "invalid",
      'a line is {"id", "decision": "allow", "scope": "once" or "session"}, {"id", "decision": "deny", "reason"} or {"id", "password"}',
    );
  const { id, ...said } = parsed.data;
  if (!("password" in said)) return { id, answer: said };
  return { id, answer: { decision: "password", password: Buffer.from(said.password) } };
}

/** Whether it answers what was asked: a password is no permission, and a permission is no password. */
export function fits(question: Question, answer: Answer): boolean {
  return answer.decision === "deny" || (answer.decision === "password") === (question.kind === "password");
}

/** Cuts what comes in into lines. */
export class Lines {
  #rest: Uint8Array<ArrayBufferLike> = new Uint8Array(0);

  /** @throws Fault "invalid" where a line is too long */
  push(chunk: Uint8Array): string[] {
    const all = Buffer.concat([this.#rest, chunk]);
    const end = all.lastIndexOf(10) + 1;
    this.#rest = all.subarray(end);
    if (this.#rest.length > lineLimit) throw new Fault("invalid", `a line of more than ${lineLimit} bytes`);
    return all
      .subarray(0, end)
      .toString("utf8")
      .split("\n")
      .filter((line) => line.trim() !== "");
  }

  /** What is left when nothing more comes: the last line need not have an end. */
  end(): string[] {
    const text = Buffer.from(this.#rest).toString("utf8");
    this.#rest = new Uint8Array(0);
    return text.trim() === "" ? [] : [text];
  }
}
