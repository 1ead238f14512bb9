/**
 * The programs that run beside the calls of a session, for tools whose sidecar names one (`service`): one for each folder and program.
 * A call's own processes all end with it; what is to outlive it is started here, confined as the call is.
 */
import { randomBytes } from "node:crypto";
import { existsSync, mkdirSync, rmSync, statSync } from "node:fs";
import { basename, join } from "node:path";
import { type Service, type ServiceEnd, type ServiceOptions, startService } from "../exec/service.ts";
import { Fault, toFault } from "../fault.ts";
import type { Cage } from "../sandbox/cage.ts";
import { sessionEnvironment, temporaryFolder } from "./environment.ts";
import { launchOf } from "./execution.ts";
import { programOf } from "./program.ts";
import type { CallContext, ToolService } from "./tool.ts";

/** Milliseconds in which a service must have said that it is ready. */
const patience = 20_000;
/** What files of a call end in; see service-talk.ts. */
const endings = [".request", ".request.new", ".answer", ".answer.new"];
/** setTimeout takes 31 bits and fires at once beyond. */
const longestTimer = 2 ** 31 - 1;

/** A call's use of a service, which is not idle until the call has released it. */
export interface Lease {
  /** Where the call's request and its answer are: paths that begin like this. */
  readonly place: string;
  /** What the call's result is to say of it. */
  readonly note?: string;
  release(): void;
}

/** The services of one session. */
export class ServicePool {
  readonly #runs = new Map<string, Run>();
  #closed = false;

  /**
   * Resolves when the service runs; starts it if it does not, also where it has ended since the last call.
   * @param signal aborted: resolves at once, for a call that will not run
   * @throws Fault that says why it could not be started
   */
  async acquire(service: ToolService, ctx: CallContext, signal: AbortSignal): Promise<Lease> {
    try {
      const cage = await ctx.serviceCage();
      const env = sessionEnvironment(ctx, cage);
      const terms = termsOf(service, env, cage);
      const start = () => this.#start(service, ctx, terms, { env, launch: launchOf(ctx, cage) });
      const run = this.#find(service, ctx, terms) ?? start();
      const leave = run.enter();
      await Promise.race([run.started, aborted(signal)]).catch((error) => {
        leave();
        throw error;
      });
      const place = run.newPlace();
      const release = () => {
        for (const ending of endings) rmSync(place + ending, { force: true });
        leave();
      };
      return { place, note: run.takeNote(), release };
    } catch (error) {
      const { kind, message } = toFault(error);
      const name = basename(service.path);
      throw new Fault(kind, `its service ${name} could not be started: ${message}`, { cause: error });
    }
  }

  /** Ends all of them and starts none any more. */
  async close(): Promise<void> {
    this.#closed = true;
    const runs = [...this.#runs.values()];
    this.#runs.clear();
    await Promise.all(runs.map((run) => run.stop()));
  }

  /** One that can be used as it is. */
  #find(service: ToolService, ctx: CallContext, terms: string): Run | undefined {
    const run = this.#runs.get(placeOf(service, ctx));
    return run?.usable && run.terms === terms ? run : undefined;
  }

  #start(
    service: ToolService,
    ctx: CallContext,
    terms: string,
    { env, launch }: Pick<ServiceOptions, "env" | "launch">,
  ): Run {
    if (this.#closed) throw new Fault("missing", `session ${ctx.session} is ending`);
    const place = placeOf(service, ctx);
    const before = this.#runs.get(place);
    before?.retire();
    const folder = join(temporaryFolder(ctx), `.service-${randomBytes(4).toString("hex")}`);
    mkdirSync(folder, { mode: 0o700 });
    const givenUp = new AbortController();
    const starting = startService({
      argv: programOf(service.path),
      cwd: ctx.cwd,
      env: { ...env, OLLIE_SERVICE: folder },
      launch,
      patience,
      signal: givenUp.signal,
    });
    const died = before?.died;
    const note = died && `${basename(service.path)} had ended (${died.how}) and was started again`;
    const run = new Run({
      terms,
      folder,
      starting,
      givenUp,
      idle: idleOf(service, ctx),
      note,
    });
    run.onGone = () => {
      // One that died stays known, so that the next call can tell of it.
      if (!run.died && this.#runs.get(place) === run) this.#runs.delete(place);
    };
    this.#runs.set(place, run);
    return run;
  }
}

interface Start {
  /** What it was started with: a call with other terms needs another one. */
  terms: string;
  /** For requests and answers. */
  folder: string;
  starting: Promise<Service>;
  givenUp: AbortController;
  /** Milliseconds. */
  idle: number;
  note: string | undefined;
}

/** A service from its start to its end. */
class Run {
  /** How it ended, if nobody has told it to and it was not content. */
  died?: ServiceEnd;
  onGone?: () => void;
  #note: string | undefined;
  #uses = 0;
  #calls = 0;
  #ended = false;
  #retired = false;
  #timer?: NodeJS.Timeout;

  constructor(private readonly start: Start) {
    this.#note = start.note;
    start.starting.then(
      async ({ gone }) => {
        const end = await gone;
        if (!end.ok && !this.#ended) this.died = end;
        this.#over();
      },
      () => this.#over(),
    );
  }

  get terms(): string {
    return this.start.terms;
  }

  newPlace(): string {
    return join(this.start.folder, String(++this.#calls));
  }

  /** Resolves when it is ready. */
  get started(): Promise<unknown> {
    return this.start.starting;
  }

  /** Its folder may have been swept away with other temporary files. */
  get usable(): boolean {
    return !this.#ended && existsSync(this.start.folder);
  }

  takeNote(): string | undefined {
    const note = this.#note;
    this.#note = undefined;
    return note;
  }

  /** Returns how to leave; only the first time counts. */
  enter(): () => void {
    clearTimeout(this.#timer);
    this.#uses++;
    let inside = true;
    return () => {
      if (inside) this.#leave();
      inside = false;
    };
  }

  #leave(): void {
    this.#uses--;
    if (this.#uses > 0) return;
    if (this.#retired) void this.stop();
    else this.#timer = setTimeout(() => void this.stop(), this.start.idle).unref();
  }

  /** No call will use it any more; those that do may go on. */
  retire(): void {
    this.#retired = true;
    if (this.#uses === 0) void this.stop();
  }

  async stop(): Promise<void> {
    this.#over();
    this.start.givenUp.abort();
    const service = await this.start.starting.catch(() => undefined);
    await service?.end();
  }

  #over(): void {
    if (this.#ended) return;
    this.#ended = true;
    clearTimeout(this.#timer);
    rmSync(this.start.folder, { recursive: true, force: true });
    this.onGone?.();
  }
}

function placeOf(service: ToolService, ctx: CallContext): string {
  return JSON.stringify([service.path, ctx.cwd]);
}

/** Differs where a service has to be another one. A program that was replaced counts as another one. */
function termsOf(service: ToolService, env: Record<string, string>, cage: Cage | undefined): string {
  const stat = statSync(service.path, { throwIfNoEntry: false });
  return JSON.stringify([stat?.ino, stat?.mtimeMs, env, cage?.terms]);
}

/** Milliseconds. */
function idleOf({ idle, idleVariable }: ToolService, { env }: CallContext): number {
  const wanted = Number(idleVariable && env[idleVariable]);
  return Math.min(1000 * (wanted > 0 ? wanted : idle), longestTimer);
}

function aborted(signal: AbortSignal): Promise<void> {
  if (signal.aborted) return Promise.resolve();
  const { promise, resolve } = Promise.withResolvers<void>();
  signal.addEventListener("abort", () => resolve(), { once: true });
  return promise;
}
