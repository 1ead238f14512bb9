/** Authentication (RFC 4252): what is offered to the server, one after the other. */
import { existsSync } from "node:fs";
import ssh2 from "ssh2";
import type { CodedFault } from "../../fault.ts";
import type { Settings } from "../config/settings.ts";
import { Beyond, sshFault } from "../fault.ts";
import { Identities, type Identity, type Unlocking } from "../keys/identity.ts";
import type { Askpass } from "../transport.ts";

/** The names of methods that the server would go on with; null before the first answer. */
type Left = string[] | null;

export class Login {
  /** Why it ended, where that is not the server's refusal. */
  fault: CodedFault | Beyond | undefined;
  private readonly methods: AsyncGenerator<ssh2.AnyAuthMethod, void, Left>;
  private readonly identities: Identities;
  private readonly offered: string[] = [];
  private left: Left = null;
  private declined = false;
  private signed = false;
  /** Of the keyboard-interactive method that is under way. */
  private questions = 0;
  /** Called where a question stays without an answer in the middle of a method: an empty answer would count as a wrong one. */
  onDeclined: () => void = () => {};
  /** The host is the right one, and has been asked to let the user in. */
  started = false;

  constructor(
    private readonly settings: Settings,
    private readonly place: string,
    private readonly people: Askpass | undefined,
    private readonly unlocking: Unlocking,
    /** There is an ssh program that could go on. */
    private readonly program: boolean,
  ) {
    this.identities = new Identities(settings, unlocking);
    this.methods = this.sequence();
  }

  /** For ssh2. */
  readonly handler = (left: Left, _partial: boolean | null, next: ssh2.NextAuthHandler): void => {
    this.started = true;
    this.left = left ?? this.left;
    this.methods.next(left).then(
      ({ value }) => next((value ?? false) as ssh2.AnyAuthMethod),
      (error) => {
        if (error instanceof Beyond) this.fault = error;
        next(false as unknown as ssh2.AnyAuthMethod);
      },
    );
  };

  /** That the server lets nobody in, and what of all things was tried. */
  refused(): CodedFault {
    const { user, destination } = this.settings;
    const tried = this.offered.length > 0 ? `tried ${this.offered.join(", ")}` : "there was nothing to try";
    const wants = this.left?.length ? `, the server takes ${this.left.join(", ")}` : "";
    const { notes: told, beyond } = this.identities;
    const notes = [...told, ...beyond.map((key) => `${key}, which needs the ssh program`)]
      .map((note) => `; ${note}`)
      .join("");
    const hint = this.declined
      ? "nobody answered"
      : `see that this gets in: ssh ${destination.user ? `${destination.user}@` : ""}${destination.host} (ssh-add loads a key, ssh-copy-id puts it on the host)`;
    return sshFault("ssh.auth", `${this.place} does not let ${user} in: ${tried}${wants}${notes}`, { hint });
  }

  private async *sequence(): AsyncGenerator<ssh2.AnyAuthMethod, void, Left> {
    const { user: username, allows } = this.settings;
    // Some let everybody in; all others answer with what they take.
    let left = yield { type: "none", username };
    const takes = (method: string) => left === null || left.includes(method);
    if (allows.publickey && takes("publickey")) left = yield* this.keys(username, left);
    const better = this.program && this.better(left);
    if (better) throw new Beyond(sshFault("ssh.auth", `${this.place} may let the ssh program in: ${better}`));
    if (this.people)
      yield* this.answered(username, takes, (now) => {
        left = now;
      });
  }

  /** What the ssh program has that may save a person an answer. */
  private better(left: Left): string | undefined {
    const { beyond } = this.identities;
    const { controlPath } = this.settings;
    if (controlPath !== undefined && existsSync(controlPath))
      return `it is logged in already (${controlPath})`;
    if (beyond.length > 0 && !this.signed) return beyond.join(", ");
    return left?.includes("gssapi-with-mic") && hasTicket() ? "there is a Kerberos ticket" : undefined;
  }

  /** What people have to answer. A server may want one thing after the other, and one thing again. */
  private async *answered(
    username: string,
    takes: (method: string) => boolean,
    tell: (left: Left) => void,
  ): AsyncGenerator<ssh2.AnyAuthMethod, void, Left> {
    const { allows, passwordPrompts } = this.settings;
    let [codes, passwords] = [passwordPrompts, passwordPrompts];
    while (true) {
      if (allows.keyboardInteractive && codes > 0 && takes("keyboard-interactive")) {
        codes--;
        this.questions = 0;
        this.note("keyboard-interactive");
        tell(yield { type: "keyboard-interactive", username, prompt: this.prompt });
        // It is offered also where nothing is behind it.
        if (this.questions === 0) codes = 0;
      } else if (allows.password && passwords > 0 && takes("password")) {
        passwords--;
        this.note("password");
        const password = await this.ask(`${username}@${this.settings.host}'s password: `, false);
        if (password === undefined) return;
        tell(yield { type: "password", username, password });
      } else return;
    }
  }

  private async *keys(username: string, left: Left): AsyncGenerator<ssh2.AnyAuthMethod, Left, Left> {
    for await (const identity of this.identities.offer()) {
      this.note(identity.name);
      left = yield { type: "agent", username, agent: new OneKey(identity, () => (this.signed = true)) };
      // A signature that was asked for and did not suffice was the first of two factors: ssh2 does not tell. Other keys would only
      // use up the tries that the server grants.
      if (this.signed) return null;
    }
    return left;
  }

  private readonly prompt: ssh2.KeyboardInteractiveAuthMethod["prompt"] = (
    name,
    instructions,
    _lang,
    prompts,
    finish,
  ) => {
    const heading = [name, instructions].map((text) => text.trim()).filter((text) => text !== "");
    if (heading.length > 0) this.people?.notice(heading.join("\n"));
    this.questions++;
    this.answers(prompts).then(finish, () => this.onDeclined());
  };

  private async answers(prompts: ssh2.Prompt[]): Promise<string[]> {
    const given: string[] = [];
    for (const { prompt, echo } of prompts) {
      const answer = await this.ask(prompt, echo ?? false);
      if (answer === undefined) throw new Error("nobody answered");
      given.push(answer);
    }
    return given;
  }

  private async ask(prompt: string, echo: boolean): Promise<string | undefined> {
    if (this.declined) return;
    const target = `${this.settings.user}@${this.settings.host}`;
    const answer = await this.unlocking.waiting(this.people!.secret(prompt, { target, echo }));
    if (answer === undefined) {
      this.declined = true;
      return;
    }
    const text = new TextDecoder().decode(answer);
    answer.fill(0);
    return text;
  }

  private note(what: string): void {
    if (!this.offered.includes(what)) this.offered.push(what);
  }
}

/** ssh2 lets nobody but an agent take time for a signature; so each key is one. */
class OneKey extends ssh2.BaseAgent<ssh2.ParsedKey> {
  constructor(
    private readonly identity: Identity,
    private readonly signed: () => void,
  ) {
    super();
  }

  getIdentities(done: ssh2.IdentityCallback<ssh2.ParsedKey>): void {
    done(null, [this.identity.key]);
  }

  override sign(
    _key: ssh2.ParsedKey,
    data: Buffer,
    options: ssh2.SigningRequestOptions | ssh2.SignCallback,
    callback?: ssh2.SignCallback,
  ): void {
    const done = typeof options === "function" ? options : callback!;
    const hash = typeof options === "function" ? undefined : options.hash;
    this.identity.sign(data, hash as "sha256" | "sha512" | undefined).then(
      (signature) => {
        this.signed();
        done(null, signature);
      },
      (error) => done(error),
    );
  }
}

function hasTicket(): boolean {
  return Boolean(process.env.KRB5CCNAME) || existsSync(`/tmp/krb5cc_${process.getuid!()}`);
}
