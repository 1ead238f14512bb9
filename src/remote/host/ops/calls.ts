/** Steps that are tool calls: the dispatcher of the local server runs them, with a context that is made here. */
import { Secrets } from "../../../config/secrets.ts";
import { ServicePool } from "../../../tools/service.ts";
import type { Approval, CallContext, JobStarter } from "../../../tools/tool.ts";
import type { Step } from "../../protocol/operation.ts";
import type { SessionSettings } from "../../protocol/session.ts";
import { fromHome } from "../home.ts";
import type { Confinement } from "./confinement.ts";
import type { OperationsGround } from "./engine.ts";
import type { Toolset } from "./toolset.ts";

export type ToolStep = Extract<Step, { tool: string }>;

export class Calls {
  readonly services = new ServicePool();
  #secrets?: { settings: SessionSettings; secrets: Secrets };

  constructor(
    private readonly ground: OperationsGround,
    private readonly confinement: Confinement,
    private readonly tools: Toolset,
  ) {}

  contextOf(step: ToolStep, more: { approval?: Approval; jobs?: JobStarter }): CallContext {
    const { ground, confinement } = this;
    const cwd = step.cwd === undefined ? ground.cwd : fromHome(step.cwd);
    const listener = `${step.session}/${step.agent}`;
    const request = { name: step.sandbox, cwd, listener };
    return {
      session: step.session,
      agent: step.agent,
      cwd,
      env: ground.settings().env,
      secrets: this.#known(),
      tmp: confinement.tmp,
      toolsPath: this.tools.folders.join(":"),
      memoryPath: "",
      skillsPath: "",
      sandbox: step.sandbox,
      cage: async () => confinement.cage(request),
      serviceCage: async () => confinement.cage({ ...request, service: true }),
      changesAllowed: () => confinement.acceptChanges(),
      services: this.services,
      ...more,
    };
  }

  /** Of the session's own variables: others are not known here. */
  #known(): Secrets {
    const settings = this.ground.settings();
    if (this.#secrets?.settings !== settings) {
      const secrets = new Secrets();
      secrets.learnSession(settings.env);
      this.#secrets = { settings, secrets };
    }
    return this.#secrets.secrets;
  }
}
