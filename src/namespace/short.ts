/**
 * `s/{sname}/`, as older scripts have it: the session's files, and its first agent's where the session has none of that name. The folder
 * `agent` and `job` can be walked to but are not listed: `rm -r` would take the agent first, and then miss the agent's files that it has
 * seen here.
 */
import { Fault } from "../fault.ts";
import type { File } from "../ninep/file.ts";
import type { LiveSession } from "../session/live.ts";
import { AgentFolder } from "./agent.ts";
import type { Context } from "./context.ts";
import type { Named } from "./folder.ts";
import { SessionSite } from "./session.ts";

export class ShortFolder extends SessionSite {
  constructor(context: Context, session: LiveSession, folder: File) {
    super(context, session, folder, "short");
  }

  protected child(name: string): File {
    const file = this.file(name) ?? this.#firstAgent()?.file(name, this);
    if (file) return file;
    throw new Fault("missing", `neither the session nor its first agent has a file ${name}`);
  }

  protected children(): File[] {
    const own = this.files();
    const names = new Set(own.map((file) => file.name));
    const agents: Named[] = this.#firstAgent()?.files(this) ?? [];
    return [...own, ...agents.filter((file) => !names.has(file.name))];
  }

  #firstAgent(): AgentFolder | undefined {
    const agent = this.target.agents()[0];
    return agent && new AgentFolder(this.context, agent, this);
  }
}
