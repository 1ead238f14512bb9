/** `olliesrv sandbox`: what tools may do in a folder, and what a project asks for. */
import { join, resolve } from "node:path";
import { tilde } from "../../config/paths.ts";
import { Fault } from "../../fault.ts";
import { SandboxConfigs, type Survey } from "../../sandbox/configs.ts";
import { realpathOfPart } from "../../sandbox/paths.ts";
import type { Policy } from "../../sandbox/policy.ts";
import { printable, projectFileName } from "../../sandbox/project.ts";
import { digest } from "../../sandbox/project-approvals.ts";
import { groundOf } from "../../session/ground.ts";
import { command, WrongUse } from "../program.ts";
import { writeOut } from "../stdio.ts";
import { whereabouts, whichOptions } from "./options.ts";

const options = {
  name: { type: "string", value: "NAME", help: "of the sandbox config, instead of default" },
  remote: {
    type: "string",
    value: "TARGET",
    help: "approve or revoke a file of another host, as remote= names it",
  },
  sha256: { type: "string", value: "HASH", help: "what that file holds, as the session's chat tells it" },
  json: { type: "boolean", help: "print JSON" },
  ...whichOptions,
} as const;

type Ask = (configs: SandboxConfigs, folder: string, name: string) => { json: object; text: string };

const actions: Record<string, Ask> = { show, approve, revoke };

export const sandbox = command({
  usage: "show|approve|revoke [DIR|FILE] [OPTIONS]",
  about:
    `show prints what tools may do in DIR (default: this folder) and what its ${projectFileName} asks for. approve lets that file count\n` +
    "as it is now and prints what it asks for; revoke takes that back. It counts for the next call. With --remote: of a file on another host.",
  options,
  words: [1, 2],
  async run({ values, words: [action, folder = "."] }) {
    const ask = Object.hasOwn(actions, action!) ? actions[action!] : undefined;
    if (!ask) throw new WrongUse(`sandbox ${action}: one of ${Object.keys(actions).join(", ")} is right`);
    const configs = new SandboxConfigs(groundOf(whereabouts(values)));
    const { json, text } =
      values.remote === undefined
        ? ask(configs, resolve(folder), values.name ?? "")
        : there(configs, action!, { target: values.remote, file: folder, sha256: values.sha256 });
    await writeOut(values.json ? `${JSON.stringify(json, null, 2)}\n` : text);
    return 0;
  },
});

/** A file of another host is not read from here: it is approved by its hash, and so as it was when that was told. */
function there(
  { approvals }: SandboxConfigs,
  action: string,
  { target, file, sha256 }: { target: string; file: string; sha256?: string },
): { json: object; text: string } {
  if (action === "show")
    throw new WrongUse(
      "sandbox show tells of folders of this machine; a session's chat tells what one elsewhere asks for",
    );
  if (!file.startsWith("/")) throw new WrongUse("--remote takes the absolute path of the file on that host");
  const place = `${target}:${file}`;
  if (action === "revoke") {
    if (!approvals.revoke(place)) throw new Fault("missing", `${place} is not approved`);
    return { json: { target, file, approved: false }, text: `${place} does not count any more\n` };
  }
  if (!/^[0-9a-f]{64}$/.test(sha256 ?? ""))
    throw new WrongUse("--remote needs --sha256 with the 64 digits that the session's chat tells");
  approvals.approveThere(target, file, sha256!);
  return {
    json: { target, file, sha256, approved: true },
    text: `approved ${place} as long as it holds ${sha256}\n`,
  };
}

function show(configs: SandboxConfigs, folder: string, name: string): { json: object; text: string } {
  const survey = configs.survey(folder, name);
  const { policy, shipped, files, remarks, warnings, project } = survey;
  const { home } = configs.ground.paths;
  const rows: [string, string[]][] = [
    ["folder", [folder]],
    ["configs", [...(shipped ? ["the shipped default"] : []), ...files.map((file) => tilde(file, home))]],
    ["project", projectLines(project)],
    ["remark", project && !project.approved ? remarks.filter((one) => !one.includes(project.file)) : remarks],
    ["warning", warnings],
    ["network", [networkLine(policy)]],
    ["unix", policy.network.unix],
    ["env", [policy.env.join(" ")]],
    ...Object.entries(policy.filesystem),
    ["frozen", policy.frozen],
    ["hidden", policy.hidden],
  ];
  const asked = project && { file: project.file, asks: project.asks, approved: project.approved };
  return {
    json: {
      folder,
      name: name || "default",
      shipped,
      files,
      project: asked ?? null,
      remarks,
      warnings,
      policy,
    },
    text: rows.map(([what, lines]) => table(what, lines)).join(""),
  };
}

function projectLines(project: Survey["project"]): string[] {
  if (!project) return [];
  const { file, asks, approved } = project;
  const state = approved ? "approved" : asks.length > 0 ? "not approved, does not count" : "asks for nothing";
  return [`${file} (${state})`, ...asks.map((ask) => `asks for ${printable(ask)}`)];
}

function networkLine({ network }: Policy): string {
  if (network.unrestricted) return "unrestricted";
  const ports = (what: string, list: number[]) =>
    list.length > 0 ? [`${what} TCP ports ${list.join(" ")}`] : [];
  return [...ports("connect to", network.connect), ...ports("listen at", network.bind)].join(", ") || "none";
}

function approve(configs: SandboxConfigs, folder: string, name: string): { json: object; text: string } {
  const { file, text, asks } = projectOf(configs, folder, name);
  configs.approvals.approve(file, text);
  const lines = asks.map((ask) => `  ${printable(ask)}\n`).join("");
  return {
    json: { file, sha256: digest(text), asks, approved: true },
    text: `approved ${file}\n${lines || "  (it asks for nothing that tools have not)\n"}`,
  };
}

function revoke(configs: SandboxConfigs, folder: string, name: string): { json: object; text: string } {
  // The file itself may be gone by now.
  let file = join(realpathOfPart(folder), projectFileName);
  if (!configs.approvals.revoke(file)) {
    file = projectOf(configs, folder, name).file;
    configs.approvals.revoke(file);
  }
  return { json: { file, approved: false }, text: `${file} does not count any more\n` };
}

/** @throws Fault where there is none, or it makes no sense */
function projectOf(configs: SandboxConfigs, folder: string, name: string): NonNullable<Survey["project"]> {
  const { project, remarks } = configs.survey(folder, name);
  if (project) return project;
  const mistake = remarks.find((remark) => remark.includes(projectFileName));
  if (mistake) throw new Fault("invalid", mistake);
  throw new Fault("missing", `there is no ${projectFileName} in ${folder} or at the top of its repository`);
}

function table(what: string, lines: string[]): string {
  return lines.map((line, i) => `${(i === 0 ? what : "").padEnd(8)}  ${line}\n`).join("");
}
