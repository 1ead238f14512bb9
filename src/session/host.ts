/** What an agent lends to its turns. */
import type { CageRequest } from "../sandbox/sandbox.ts";
import type { AgentStore } from "../store/agent-store.ts";
import type { Hands, ProjectSurvey } from "../tools/hands.ts";
import type { CallContext, Tool } from "../tools/tool.ts";
import { systemPrompt } from "../turn/context.ts";
import type { Gate } from "../turn/gate.ts";
import type { AgentSettings, TurnHost } from "../turn/host.ts";
import type { Agent } from "./agent.ts";
import { checkBound } from "./limits.ts";
import type { Topic } from "./live.ts";
import { folderHere } from "./reach.ts";
import type { Services } from "./services.ts";

export class Host implements TurnHost {
  constructor(
    readonly agent: Agent,
    readonly services: Services,
  ) {}

  get name(): string {
    return this.agent.name;
  }

  get store(): AgentStore {
    return this.agent.store;
  }

  get gate(): Gate {
    return this.agent.session.gate;
  }

  settings(): AgentSettings {
    return this.agent.profile.settings();
  }

  get elsewhere(): boolean {
    return this.agent.session.reach.elsewhere;
  }

  get hands(): Hands {
    return this.agent.session.reach.hands;
  }

  handsFor(tool: Tool): Hands {
    return this.agent.session.reach.handsFor(tool);
  }

  get grace(): number {
    return this.agent.session.reach.opened?.grace ?? 0;
  }

  loadedTools(): Tool[] {
    return this.agent.toolbox.loaded();
  }

  survey(signal: AbortSignal): Promise<ProjectSurvey> {
    return this.hands.survey(this.agent.profile.cwd(), signal);
  }

  systemPrompt(project: ProjectSurvey): string {
    const { profile, toolbox } = this.agent;
    return systemPrompt({
      config: profile.config(),
      cwd: profile.cwd(),
      project,
      prompts: this.services.prompts,
      loadable: toolbox.loadable(),
    });
  }

  callContext(tool: Tool): CallContext {
    const { session, name } = this.agent;
    const { toolsPath, memoryPath, skillsPath } = this.services;
    const cwd = this.#cwd(tool);
    return {
      session: session.name,
      agent: name,
      cwd,
      sandbox: this.#sandbox(),
      env: Object.fromEntries(session.envMap()),
      secrets: session.store.secrets,
      tmp: session.store.tmp,
      address: (over) => this.#address(over),
      toolsPath,
      memoryPath,
      skillsPath,
      cage: async () => this.services.cageFor(this.#cageRequest(cwd)),
      serviceCage: async () =>
        this.services.cageFor({ ...this.#cageRequest(cwd), service: true, listener: "nobody" }),
      changesAllowed: () => this.services.acceptChanges(),
      services: session.servicePool,
      jobs: session.jobs,
    };
  }

  /** Where the tool works, as the machine that it runs on has it. */
  #cwd(tool: Tool): string {
    const { session, profile } = this.agent;
    const { elsewhere } = session.reach;
    if (!elsewhere) checkBound(profile.cwd(), profile.within());
    return elsewhere && !tool.remote ? folderHere(session.store.tmp) : profile.cwd();
  }

  #sandbox(): string | undefined {
    const { session, profile } = this.agent;
    return session.store.json.cfg.sandbox || profile.config().sandbox;
  }

  #cageRequest(cwd: string): CageRequest {
    const { session, profile, name } = this.agent;
    const own = cwd === profile.cwd();
    return {
      name: this.#sandbox(),
      cwd,
      bound: own ? profile.within() : cwd,
      tmp: session.store.tmp,
      listener: `${session.name}/${name}`,
      address: (over) => this.#address(over),
    };
  }

  #address(over: "unix" | "tcp"): { addr: string; token?: string } {
    const { addresses } = this.services;
    return over === "unix" ? { addr: addresses.unix(this.agent) } : addresses.tcp(this.agent);
  }

  touch(...topics: Topic[]): void {
    this.agent.touch(...topics);
  }
}
