/**
 * Scenario files of the `script` backend: what a scripted model answers to what. The format is described in doc/SCENARIOS.md:
 *
 * ```yaml
 * window: 8000                # context window in tokens that the model pretends to have; 100000 if left out
 * rules:                      # tried from top to bottom; the first that matches is played
 *   - match:                  # all conditions must hold; without match a rule always applies
 *       user: /fix (\w+)/i    # the last user message: a substring, or a /regular expression/
 *       tool: shell           # the newest messages are tool results, one of this tool (name or /regular expression/) …
 *       result: /exit (\d+)/  # … with this text
 *       agent: reviewer       # the agent config's name, or a /regular expression/
 *       nth: 2                # only the second time the other conditions hold; a list of numbers, too
 *     do:
 *       - text: "$1 it is."   # $1 … $9: groups of `user`, then of `result`
 *         chunk: 4            # characters a delta
 *         delay: 20           # milliseconds before each delta
 *       - reasoning: Hm.      # likewise
 *       - calls: [{ name: shell, args: { command: ls } }]
 *       - delay: 500
 *       - usage: { input: 900, output: 12, cost: 0.001 }
 *       - finish: length
 *       - error: { status: 429, message: Slow down, retryAfter: 2 }
 *       - cut: true           # the connection breaks off
 * ```
 */
import { readFileSync, statSync } from "node:fs";
import { isMap, isScalar, isSeq, LineCounter, type Pair, type ParsedNode, parseDocument } from "yaml";
import { z } from "zod";
import { Fault, toFault } from "../fault.ts";

/** A text that is looked for, or a regular expression between slashes. */
export type Pattern = string | RegExp;

const pattern = z.string().transform((text, context): Pattern => {
  const parts = /^\/(.+)\/([a-z]*)$/s.exec(text);
  // Not every text between slashes is an expression: paths are not.
  if (!parts || /[^dimsuv]/.test(parts[2]!)) return text;
  try {
    return new RegExp(parts[1]!, parts[2]);
  } catch (error) {
    context.addIssue({ code: "custom", message: (error as Error).message });
    return z.NEVER;
  }
});

/** An object without unknown keys, which would be misspelt ones. */
function strict<Shape extends z.ZodRawShape>(shape: Shape) {
  const known = Object.keys(shape).join(", ");
  return z.strictObject(shape, {
    error: (issue) => (issue.code === "unrecognized_keys" ? `unknown key; there are ${known}` : undefined),
  });
}

const count = z.number().int().nonnegative();
const milliseconds = z.number().nonnegative();

const step = strict({
  text: z.string(),
  reasoning: z.string(),
  calls: z.array(
    strict({
      name: z.string().min(1),
      /** An object, or a text that need not be JSON. */
      args: z.union([z.record(z.string(), z.unknown()), z.string()]).default({}),
    }),
  ),
  chunk: z.number().int().positive(),
  delay: milliseconds,
  usage: strict({
    input: count.default(0),
    cacheRead: count.default(0),
    cacheWrite: count.default(0),
    output: count.default(0),
    reasoning: count.optional(),
    cost: z.number().nonnegative().optional(),
  }),
  finish: z.enum(["stop", "tool-calls", "length", "filter"]),
  error: strict({
    /** HTTP status; left out: a network error. */
    status: z.number().int().min(400).max(599).optional(),
    message: z.string(),
    /** Seconds. */
    retryAfter: z.number().nonnegative().optional(),
  }),
  cut: z.literal(true),
})
  .partial()
  .superRefine((value, context) => {
    const kinds = stepKinds.filter((kind) => value[kind] !== undefined);
    if (kinds.length > 1)
      context.addIssue({ code: "custom", message: `${kinds.join(" and ")} are steps of their own` });
    if (kinds.length === 0 && value.delay === undefined)
      context.addIssue({ code: "custom", message: `expected one of ${stepKinds.join(", ")}, delay` });
    for (const key of ["chunk", "delay"] as const)
      if (value[key] !== undefined && kinds.some((kind) => kind !== "text" && kind !== "reasoning"))
        context.addIssue({ code: "custom", path: [key], message: "goes with text or reasoning only" });
  });

const stepKinds = ["text", "reasoning", "calls", "usage", "finish", "error", "cut"] as const;

const rule = strict({
  match: strict({
    user: pattern,
    tool: pattern,
    result: pattern,
    agent: pattern,
    nth: z.union([z.number().int().positive(), z.array(z.number().int().positive())]),
  })
    .partial()
    .default({}),
  do: z.array(step).min(1),
});

const scenario = strict({
  window: z.number().int().positive().optional(),
  rules: z.array(rule).min(1),
});

export type Step = z.input<typeof step>;
export type ParsedStep = z.infer<typeof step>;
export type Rule = z.infer<typeof rule>;
export type Scenario = z.infer<typeof scenario>;

/**
 * Reads a scenario out of a text.
 * @param file its name in error messages
 * @throws Fault "invalid": file, line, rule, key, and what is wrong there
 */
export function parseScenario(text: string, file: string): Scenario {
  const lines = new LineCounter();
  const document = parseDocument(text, { lineCounter: lines });
  const [syntax] = document.errors;
  if (syntax) {
    const line = lines.linePos(syntax.pos[0]).line;
    throw new Fault("invalid", `${file}:${line}: ${syntax.message.split(/ at line|\n/)[0]}`);
  }
  // A bare list is a list of rules.
  const bare = isSeq(document.contents);
  const value: unknown = document.toJS();
  if (value === null) throw new Fault("invalid", `${file}: empty; a scenario has a list of rules`);
  const parsed = scenario.safeParse(bare ? { rules: value } : value);
  if (parsed.success) return parsed.data;
  const issue = parsed.error.issues[0]!;
  const unknown = issue.code === "unrecognized_keys" ? issue.keys.slice(0, 1) : [];
  const path = [...issue.path, ...unknown].map((key) => (typeof key === "symbol" ? String(key) : key));
  const place = lines.linePos(offsetOf(document.contents, bare ? path.slice(1) : path)).line;
  const what = issue.message.replace(/^Invalid input: /, "");
  throw new Fault("invalid", `${file}:${place}: ${[name(path), what].filter(Boolean).join(": ")}`);
}

/** Where in the text the key or item at `path` stands, or the nearest thing around it that exists. */
function offsetOf(root: ParsedNode | null, path: (string | number)[]): number {
  let node: ParsedNode | null | undefined = root;
  let offset = root?.range[0] ?? 0;
  for (const key of path) {
    if (isMap(node)) {
      const pair: Pair<ParsedNode, ParsedNode | null> | undefined = node.items.find(
        (item) => isScalar(item.key) && item.key.value === key,
      );
      if (!pair) break;
      offset = pair.key.range[0];
      node = pair.value;
    } else if (isSeq(node)) {
      node = node.items[Number(key)];
      if (!node) break;
      offset = node.range[0];
    } else break;
  }
  return offset;
}

/** `rules, 2, do, 0, text` → `rule 3, do 1, text`: people count from one. */
function name(path: (string | number)[]): string {
  const words: string[] = [];
  for (const key of path) {
    if (typeof key === "number")
      words.push(`${words.pop()?.replace(/^rules$/, "rule") ?? ""} ${key + 1}`.trim());
    else words.push(key);
  }
  return words.join(", ");
}

/** A scenario file that is read again when it has changed, so that a rehearsal can be written while the server runs. */
export class ScenarioFile {
  #stamp = "";
  #scenario?: Scenario;

  constructor(readonly path: string) {}

  /** @throws Fault that names the file: it cannot be read, or what is wrong in it */
  read(): Scenario {
    let stamp: string;
    try {
      const stat = statSync(this.path);
      stamp = `${stat.mtimeMs} ${stat.size} ${stat.ino}`;
      if (this.#scenario && stamp === this.#stamp) return this.#scenario;
      this.#scenario = parseScenario(readFileSync(this.path, "utf8"), this.path);
    } catch (error) {
      if (error instanceof Fault) throw error;
      throw toFault(error, `cannot read the scenario ${this.path}`);
    }
    this.#stamp = stamp;
    return this.#scenario;
  }
}
