/**
 * What all commands share: subcommands, options, help, errors and exit status.
 *
 * Exit status: 0 done; 1 failed, with one line on stderr that says what, why and what to do; 2 wrong use; 130 interrupted from the
 * keyboard; 141 nobody reads the output any more (as if SIGPIPE had ended it).
 */
import { parseArgs } from "node:util";
import { build } from "../config/version.ts";
import { toFault } from "../fault.ts";
import { BrokenPipe, writeError, writeOut } from "./stdio.ts";

export interface Option {
  type: "string" | "boolean";
  short?: string;
  multiple?: boolean;
  /** What stands for the value in the help, for options of type string. */
  value?: string;
  help: string;
}
export type Options = Record<string, Option>;

type Value<O extends Option> = O["type"] extends "boolean" ? boolean : string;
export type Values<O extends Options> = {
  [K in keyof O]?: O[K]["multiple"] extends true ? Value<O[K]>[] : Value<O[K]>;
};

export interface Command<O extends Options = Options, G extends Options = Options> {
  /** What follows the command's name: `[-l] PATH`. */
  usage: string;
  /** Some sentences for the help. */
  about: string;
  options: O;
  /** Least and greatest number of words that are no options. */
  words: [number, number];
  /** What follows the first word belongs to it, also what looks like an option. */
  ownWords?: boolean;
  /** Returns the exit status; undefined is 0. */
  run(call: { values: Values<O>; words: string[]; globals: Values<G> }): Promise<number | undefined>;
}

/** One row of a program's table. The command itself is loaded when it is called. */
export interface Entry<G extends Options> {
  summary: string;
  // biome-ignore lint/suspicious/noExplicitAny: each command has options of its own
  load(): Promise<Command<any, G>>;
}

export interface Program<G extends Options = Options> {
  name: string;
  about: string;
  /** Options before the command's name. */
  globals: G;
  commands: Record<string, Entry<G>>;
}

/** A command with its option types filled in. */
export function command<const O extends Options, G extends Options = Options>(
  definition: Command<O, G>,
): Command<O, G> {
  return definition;
}

/** Thrown for a wrong use of a command: exit status 2. */
export class WrongUse extends Error {
  override readonly name = "WrongUse";
}

/** Runs the command that `argv` (without program names) asks for and returns the exit status. */
export async function runProgram<G extends Options>(
  program: Program<G>,
  argv: readonly string[],
): Promise<number> {
  let asked = program.name;
  try {
    const { globals, name, rest: given, shown } = splitGlobals(program, argv);
    if (shown !== undefined) return await print(shown);
    if (name === undefined) throw new WrongUse("which command?");
    const entry = Object.hasOwn(program.commands, name) ? program.commands[name] : undefined;
    if (!entry) throw new WrongUse(`no command ${name}`);
    asked = `${program.name} ${name}`;
    const found = await entry.load();
    const rest = found.ownWords ? endedAtWord(given, found.options) : given;
    if (wants(rest, "--help", "-h")) return await print(commandHelp(program, name, found));
    if (wants(rest, "--version")) return await print(versionLine(program.name));
    const { values, words } = parse(rest, found.options);
    const [least, most] = found.words;
    if (words.length < least || words.length > most) {
      throw new WrongUse(`expected ${asked} ${found.usage}`);
    }
    return (await found.run({ values, words, globals })) ?? 0;
  } catch (error) {
    if (error instanceof BrokenPipe) return 141;
    if (error instanceof WrongUse) {
      await writeError(`${program.name}: ${error.message} (see ${asked} --help)\n`);
      return 2;
    }
    await writeError(`${program.name}: ${oneLine(toFault(error).message)}\n`);
    return 1;
  }
}

/** Takes apart what stands before the command. `shown` is what to print instead of running one. */
function splitGlobals<G extends Options>(program: Program<G>, argv: readonly string[]) {
  let at = 0;
  while (at < argv.length && argv[at]!.startsWith("-")) {
    const word = argv[at]!;
    if (word === "--help" || word === "-h") return { globals: {}, rest: [], shown: programHelp(program) };
    if (word === "--version") return { globals: {}, rest: [], shown: versionLine(program.name) };
    const long = word.startsWith("--");
    const option = Object.entries(program.globals).find(
      ([key, { short }]) => word === `-${short}` || word === `--${key}` || word.startsWith(`--${key}=`),
    );
    at += option && option[1].type === "string" && !(long && word.includes("=")) ? 2 : 1;
  }
  const name = argv[at];
  if (name === "help") return { globals: {}, rest: [], shown: programHelp(program) };
  return { globals: parse(argv.slice(0, at), program.globals).values, name, rest: argv.slice(at + 1) };
}

function parse<O extends Options>(
  args: readonly string[],
  options: O,
): { values: Values<O>; words: string[] } {
  try {
    const parsed = parseArgs({ args: [...args], options, allowPositionals: true, strict: true });
    return { values: parsed.values as Values<O>, words: parsed.positionals };
  } catch (error) {
    const [first] = (error as Error).message.split(/\n|\. To specify/);
    throw new WrongUse(first!.charAt(0).toLowerCase() + first!.slice(1));
  }
}

/** Puts `--` before the first word, which ends the options. */
function endedAtWord(args: readonly string[], options: Options): readonly string[] {
  let at = 0;
  while (at < args.length && /^-./.test(args[at]!)) {
    if (args[at] === "--") return args;
    const option = Object.entries(options).find(
      ([key, { short }]) => args[at] === `--${key}` || (short !== undefined && args[at] === `-${short}`),
    )?.[1];
    at += option?.type === "string" ? 2 : 1;
  }
  return at > args.length ? args : [...args.slice(0, at), "--", ...args.slice(at)];
}

/** Whether one of `flags` stands among the options, that is before any `--`. */
function wants(args: readonly string[], ...flags: string[]): boolean {
  const end = args.indexOf("--");
  return (end < 0 ? args : args.slice(0, end)).some((word) => flags.includes(word));
}

async function print(text: string): Promise<number> {
  await writeOut(text);
  return 0;
}

function oneLine(text: string): string {
  return text.replace(/\s*\n\s*/g, "; ");
}

function versionLine(name: string): string {
  return `${name} ${build.version} (${build.commit})\n`;
}

function programHelp(program: Program<Options>): string {
  const listed = Object.entries(program.commands);
  const rows = listed.map(([name, entry]): [string, string] => [name, entry.summary]);
  const globals = Object.keys(program.globals).length > 0 ? "[OPTIONS] " : "";
  return (
    `usage: ${program.name} ${globals}COMMAND …\n\n${program.about}\n\n${table(rows)}\n` +
    `${table(optionRows({ ...program.globals, ...common }))}\n` +
    `${program.name} COMMAND --help tells more.\n`
  );
}

function commandHelp(program: Program<Options>, name: string, found: Command): string {
  const { usage, about, options } = found;
  return (
    `usage: ${program.name} ${name}${usage ? ` ${usage}` : ""}\n\n${about}\n\n` +
    table(optionRows({ ...options, ...common }))
  );
}

const common: Options = {
  help: { type: "boolean", short: "h", help: "show this" },
  version: { type: "boolean", help: "show the version" },
};

function optionRows(options: Options): [string, string][] {
  return Object.entries(options).map(([key, option]) => {
    const short = option.short ? `-${option.short}, ` : "    ";
    return [`${short}--${key}${option.value ? ` ${option.value}` : ""}`, option.help];
  });
}

function table(rows: [string, string][]): string {
  const width = Math.max(...rows.map(([left]) => left.length));
  return rows.map(([left, right]) => `  ${left.padEnd(width)}  ${right}\n`).join("");
}
