/** `.ollie-sandbox.yaml`: what a project asks for. It comes with the project, so by itself it opens nothing. */
import { lstatSync } from "node:fs";
import { dirname, join } from "node:path";
import { readTextFile } from "../config/yaml.ts";
import { Fault } from "../fault.ts";
import { type Layer, parseSandboxConfig, type SandboxConfig, sizeLimit } from "./config.ts";
import type { Repository } from "./git.ts";

export const projectFileName = ".ollie-sandbox.yaml";

export interface ProjectFile extends Layer {
  file: string;
  text: string;
}

/**
 * That of `cwd`, else that of the top of its repository; undefined where neither has one.
 * @throws Fault "invalid" that names file and key
 */
export function readProjectFile(cwd: string, repository: Repository | undefined): ProjectFile | undefined {
  for (const folder of new Set([cwd, repository?.top ?? cwd])) {
    const file = join(folder, projectFileName);
    if (isLink(file)) throw new Fault("invalid", `${file} is a link: put the file itself there`);
    const text = readTextFile(file, { limit: sizeLimit });
    if (text === undefined) continue;
    const config = parseSandboxConfig(text, file);
    if (config.extends !== undefined)
      throw new Fault("invalid", `${file}: extends: a project's file always adds to the user's config`);
    return { file, text, config };
  }
  return undefined;
}

function isLink(path: string): boolean {
  return lstatSync(path, { throwIfNoEntry: false })?.isSymbolicLink() === true;
}

/** What it asks for, as a config has it: `filesystem.rw: ~/.docker`. */
export function asksOf({ filesystem, env, network, general }: SandboxConfig): string[] {
  const lists = {
    ...prefixed("filesystem", filesystem),
    env,
    "network.bind_tcp": network.bind_tcp,
    "network.connect_tcp": network.connect_tcp,
    "network.unix": network.unix,
  };
  const flags = {
    "network.unrestricted": network.unrestricted,
    "general.best_effort": general.best_effort,
  };
  return [
    ...Object.entries(lists).flatMap(([key, values]) => values.map((value) => `${key}: ${value}`)),
    ...Object.entries(flags).flatMap(([key, value]) => (value ? [`${key}: true`] : [])),
  ];
}

function prefixed(prefix: string, lists: Record<string, string[]>): Record<string, string[]> {
  return Object.fromEntries(Object.entries(lists).map(([key, values]) => [`${prefix}.${key}`, values]));
}

/**
 * For a result: names the file, what it asks for and the command that approves it.
 * @param command what the user types
 */
export function unapprovedRemark({ file }: ProjectFile, asked: string[], command: string): string {
  const shown = asked.slice(0, 6).join(", ") + (asked.length > 6 ? ` and ${asked.length - 6} more` : "");
  return `${file} asks for ${printable(shown)}, which does not count: the user has not approved it (${command})`;
}

/** Of a file of this machine. */
export function approveCommand({ file }: ProjectFile): string {
  return `olliesrv sandbox approve ${quoted(dirname(file))}`;
}

/** The text is anybody's: what a terminal would obey is shown as what it is. */
export function printable(text: string): string {
  return text.replace(/[\p{Cc}\p{Cf}\u2028\u2029]/gu, (character) => {
    return `\\u{${character.codePointAt(0)!.toString(16)}}`;
  });
}

/** For a line of sh. */
export function quoted(path: string): string {
  return /^[\w./@+-]+$/.test(path) ? path : `'${path.replaceAll("'", `'\\''`)}'`;
}
