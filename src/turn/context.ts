/** The system prompt of an agent. The same inputs give the same bytes, so that providers' prompt caches hit. */
import type { AgentConfig } from "../config/agents.ts";
import { renderPrompt } from "../config/prompt.ts";
import type { ProjectSurvey } from "../tools/hands.ts";
import type { Tool } from "../tools/tool.ts";

export interface PromptParts {
  config: AgentConfig;
  cwd: string;
  /** Of the machine that the tools run on. */
  project: ProjectSurvey;
  /** Folders of `OLLIE_PROMPTS_PATH`. */
  prompts: readonly string[];
  /** Tools the agent may load but has not. */
  loadable: readonly Tool[];
}

/** @throws Fault "missing" that names a prompt file which the config asks for and nobody has */
export function systemPrompt({ config, cwd, project, prompts, loadable }: PromptParts): string {
  const parts = [
    renderPrompt(config.prompt, prompts, {
      cwd,
      platform: project.platform,
      // The day, not the time: a prompt that changed every second would never be found in a cache.
      date: new Date().toISOString().slice(0, 10),
      git: project.git,
    }),
    ...project.files.map(({ path, text }) => `# ${path}\n\n${text}`),
  ];
  if (loadable.length > 0)
    parts.push(
      `# Tools that can be loaded\n\n${loadable.map(({ name, description }) => `- ${name}: ${description}`).join("\n")}`,
    );
  return parts.filter((part) => part !== "").join("\n\n");
}
