/** The two gates before a call that wants out of the sandbox: an approval, and for root the password that sudo asks for. */
import type { SudoDoor } from "../tools/hands.ts";
import type { SudoAccess } from "../tools/sudo.ts";
import { findSudo, sudoHere } from "../tools/sudo-door.ts";
import type { Approval, CallContext, Tool } from "../tools/tool.ts";
import type { Wishes } from "../tools/wishes.ts";
import type { Approvals } from "./approvals.ts";
import { SessionGrants } from "./grants.ts";
import { type Answer, commandOf, type Question, type Scope, type Subject } from "./question.ts";
import { visible } from "./visible.ts";

/** The call as it is about to run. */
export interface ElevatedCall {
  /** What the grants of a session hang on. */
  session: object;
  tool: Tool;
  args: Record<string, unknown>;
  wishes: Wishes;
  ctx: CallContext;
  /** The machine that it runs on, for people, where that is not this one; and sudo there. */
  host?: string;
  sudo?: SudoDoor;
  /** Tells the user, in chat. */
  say(text: string): void;
}

export type Verdict = { approval: Approval } | { denied: string };

/** How often a password may be given. */
const tries = 3;

export class Elevation {
  readonly #grants = new SessionGrants();

  constructor(
    readonly approvals: Approvals,
    private readonly host: string,
    private readonly sudo: () => string | undefined = findSudo,
  ) {}

  /** Whether the user has allowed this very call for the rest of the session, and nothing else need be asked. */
  granted(call: ElevatedCall): Approval | undefined {
    return !call.wishes.sudo && this.#allowed(call) ? { scope: "session" } : undefined;
  }

  /** Asks for whatever is still missing. Aborting `signal` withdraws the question, and the promise rejects. */
  async allow(call: ElevatedCall, signal: AbortSignal): Promise<Verdict> {
    const { wishes, ctx } = call;
    if (wishes.sudo && wishes.detach)
      return { denied: "a tool that runs as root cannot run as a background job" };
    const sudo = wishes.sudo ? this.#door(call, ctx.tmp) : undefined;
    if (wishes.sudo && !sudo) return { denied: "it needs sudo, which is not installed on this host" };
    const scope = this.#allowed(call) ? "session" : await this.#approval(call, signal);
    if (typeof scope !== "string") return scope;
    if (!sudo) return { approval: { scope } };
    const access = await this.#sudo(call, sudo, signal);
    return "denied" in access ? access : { approval: { scope, sudo: access } };
  }

  #door({ host, sudo }: ElevatedCall, tmp: string): SudoDoor | undefined {
    if (host !== undefined) return sudo;
    const program = this.sudo();
    return program === undefined ? undefined : sudoHere({ program, tmp });
  }

  async #sudo(
    call: ElevatedCall,
    sudo: SudoDoor,
    signal: AbortSignal,
  ): Promise<SudoAccess | { denied: string }> {
    const probe = await sudo.probe(signal);
    if ("refused" in probe) return { denied: `it needs sudo, and ${probe.refused}` };
    const { program, password } = probe;
    return password ? this.#password(call, { program, sudo }, signal) : { program };
  }

  async #approval(call: ElevatedCall, signal: AbortSignal): Promise<Scope | { denied: string }> {
    const root = call.wishes.sudo ? ", as root" : "";
    call.say(
      `${call.tool.name} waits to be allowed to run outside of the sandbox${root}${call.host === undefined ? "" : ` on ${call.host}`} (o approve asks you):\n${visible(commandOf(call.args))}`,
    );
    const answer = await this.#ask(call, { ...subjectOf(call, this.host), kind: "approval" }, signal);
    if (answer.decision !== "allow") return this.#denied(call, answer);
    const { scope } = answer;
    if (scope === "session") this.#grants.add(call.session, identityOf(call));
    call.say(`Allowed ${scope === "once" ? "once" : "for this session"}: ${call.tool.name}.`);
    return scope;
  }

  async #password(
    call: ElevatedCall,
    { program, sudo }: { program: string; sudo: SudoDoor },
    signal: AbortSignal,
  ): Promise<SudoAccess | { denied: string }> {
    const where = call.host === undefined ? "" : ` on ${call.host}`;
    for (let left = tries; left > 0; left--) {
      const again = left < tries;
      call.say(again ? "The password is wrong." : `sudo wants a password${where} for ${call.tool.name}.`);
      const question: Omit<Question, "id"> = {
        ...subjectOf(call, this.host),
        kind: "password",
        ...(again && { again }),
      };
      const answer = await this.#ask(call, question, signal);
      if (answer.decision !== "password") return this.#denied(call, answer);
      const { password } = answer;
      const check = await sudo.check(password, signal);
      if (check === "right") return { program, password };
      password.fill(0);
      if (check !== "wrong") return { denied: `it needs sudo, and ${check.refused}` };
    }
    call.say("The password is wrong.");
    return { denied: `it needs sudo, and the password was wrong ${tries} times` };
  }

  #ask(call: ElevatedCall, question: Omit<Question, "id">, signal: AbortSignal): Promise<Answer> {
    return this.approvals.ask(question, signal, (text) => call.ctx.secrets.mask(text));
  }

  #denied(call: ElevatedCall, answer: Answer): { denied: string } {
    const reason = answer.decision === "deny" ? answer.reason : "";
    call.say(`Denied: ${call.tool.name}${reason && `: ${reason}`}.`);
    return { denied: `it needs the user's permission, which was denied${reason && ` (${reason})`}` };
  }

  #allowed(call: ElevatedCall): boolean {
    return this.#grants.has(call.session, identityOf(call));
  }
}

function subjectOf({ tool, args, ctx, host }: ElevatedCall, here: string): Subject {
  const { session, agent, cwd } = ctx;
  return { session, agent, tool: tool.name, command: commandOf(args), cwd, host: host ?? here };
}

/** The same in all that decides what would be done. */
function identityOf({ tool, args, wishes, ctx }: ElevatedCall): unknown {
  return [tool.name, tool.path, wishes.sudo, ctx.cwd, args];
}
