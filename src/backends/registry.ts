/** Which backends there are, as the environment configures them, and what is known about them without asking. */
import { Fault } from "../fault.ts";
import type { Backend, ModelInfo } from "./backend.ts";
import type { Limits } from "./exchange.ts";
import { OllamaBackend } from "./ollama.ts";
import { OpenAIBackend } from "./openai.ts";
import { ScriptBackend } from "./script.ts";

export type Environment = Readonly<Record<string, string | undefined>>;

const builtIn = ["ollama", "openai", "script"];
/** Their names are taken; they come later. */
const announced = ["anthropic", "copilot", "gemini", "kiro"];

const urls: Record<string, string> = {
  openai: "https://api.openai.com/v1",
  openrouter: "https://openrouter.ai/api/v1",
  ollama: "http://127.0.0.1:11434",
};

/** Milliseconds: a provider is asked at most this often, and given this long to answer. */
const refreshEvery = 60_000;
const probeLimit = 5000;

interface Known {
  /** When it was asked last, in milliseconds of `performance.now`. */
  asked: number;
  models: ModelInfo[];
  /** Unset as long as the first answer is out. */
  status?: string;
}

interface Window {
  asked: number;
  tokens?: number;
}

export class BackendRegistry {
  /** What a session uses that names no backend: OLLIE_BACKEND, else the first one configured, else `script`. */
  readonly defaultName: string;
  readonly #environment: Environment;
  readonly #enabled: string[];
  readonly #backends = new Map<string, Backend>();
  readonly #known = new Map<string, Known>();
  readonly #windows = new Map<string, Window>();
  readonly #closed = new AbortController();
  /** Called when what is known about a backend has changed: the files `backends` and `models` are new. */
  onChange?: () => void;

  /** @param environment OLLIE_* variables. Nothing is checked and nothing asked here: see `get` and `refresh`. */
  constructor(environment: Environment) {
    this.#environment = environment;
    const listed = words(environment.OLLIE_ENABLED_BACKENDS);
    const configured = [...new Set([...listed, "openai", "ollama"])].filter((name) => this.#configured(name));
    this.defaultName = (environment.OLLIE_BACKEND?.trim() || configured[0]) ?? "script";
    this.#enabled = [...new Set([this.defaultName, ...(listed.length > 0 ? listed : configured)])];
  }

  /** The backends that may be used, the default one first. */
  names(): readonly string[] {
    return this.#enabled;
  }

  /**
   * A backend by its name; the default one without.
   * @throws Fault: unknown, not built in yet, or not configured
   */
  get(name: string = this.defaultName): Backend {
    let backend = this.#backends.get(name);
    if (!backend) {
      backend = this.#make(name);
      this.#backends.set(name, backend);
    }
    return backend;
  }

  // What is known, and by default a reason to ask for what is old. `ask` is false where somebody only lists files.

  /** The file `backends`: name, default model and `reachable` or why not, TAB-separated, one line a backend. */
  backends(ask = true): string {
    if (ask) this.refresh();
    const lines = this.#enabled.map((name) => {
      const status = this.#known.get(name)?.status ?? "not asked yet";
      return `${name}\t${this.#defaultModel(name)}\t${oneLine(status)}\n`;
    });
    return lines.join("");
  }

  /** The file `models`: `backend=B model=M`, one line a model that is known. */
  models(ask = true): string {
    if (ask) this.refresh();
    return this.#enabled
      .flatMap((name) => this.#ids(name).map((id) => `backend=${name} model=${id}\n`))
      .join("");
  }

  /** The file `models` of an agent: ids of one backend, one a line. */
  modelsOf(name: string, ask = true): string {
    if (ask) this.refresh();
    return this.#ids(name)
      .map((id) => `${id}\n`)
      .join("");
  }

  /** Context window in tokens as far as known; the first question about a model has it asked in the background. */
  knownWindow(name: string, model: string, ask = true): number | undefined {
    const key = `${name} ${model}`;
    const known = this.#windows.get(key);
    const fresh = known && (known.tokens || performance.now() - known.asked < refreshEvery);
    if (model === "" || fresh || !ask) return known?.tokens;
    const window: Window = { asked: performance.now() };
    this.#windows.set(key, window);
    void this.#askWindow(name, model, window);
    return undefined;
  }

  /** Asks, in the background, every backend that has not been asked within the last minute. Never throws. */
  refresh(): void {
    for (const name of this.#enabled) {
      const known = this.#known.get(name);
      if (known && performance.now() - known.asked < refreshEvery) continue;
      this.#known.set(name, { models: [], ...known, asked: performance.now() });
      void this.#probe(name);
    }
  }

  /** Ends what is still being asked. */
  close(): void {
    this.#closed.abort();
  }

  async #askWindow(name: string, model: string, window: Window): Promise<void> {
    try {
      window.tokens = await this.get(name).window(model, this.#closed.signal);
      if (window.tokens) this.onChange?.();
    } catch {
      // Unknown it stays, until it is asked again.
    }
  }

  async #probe(name: string): Promise<void> {
    const known = this.#known.get(name)!;
    const before = JSON.stringify([known.status, known.models]);
    const limit = AbortSignal.timeout(probeLimit);
    try {
      known.models = await this.get(name).models(AbortSignal.any([limit, this.#closed.signal]));
      known.status = "reachable";
    } catch (error) {
      if (this.#closed.signal.aborted) return;
      // Models that were there a minute ago are still worth showing.
      known.status = limit.aborted ? `no answer within ${probeLimit / 1000} s` : (error as Error).message;
    }
    if (JSON.stringify([known.status, known.models]) !== before) this.onChange?.();
  }

  #ids(name: string): string[] {
    const ids = this.#known.get(name)?.models.map((model) => model.id) ?? [];
    return ids.sort();
  }

  #defaultModel(name: string): string {
    try {
      return this.get(name).defaultModel;
    } catch {
      return "";
    }
  }

  #make(name: string): Backend {
    if (announced.includes(name))
      throw new Fault("missing", `the backend "${name}" is not built in yet; there are ${this.#available()}`);
    const { OLLIE_MODEL, OLLIE_SCRIPT_SCENARIO, OLLIE_OLLAMA_NUM_CTX } = this.#environment;
    const common = {
      url: this.#variable(name, "URL") ?? urls[name] ?? "",
      key: this.#variable(name, "KEY"),
      // The model of the default backend means nothing to the others.
      defaultModel: name === this.defaultName ? OLLIE_MODEL : undefined,
      limits: this.#limits(),
    };
    if (name === "script") return new ScriptBackend(OLLIE_SCRIPT_SCENARIO);
    if (name === "ollama")
      return new OllamaBackend({ ...common, window: positive(OLLIE_OLLAMA_NUM_CTX, "OLLIE_OLLAMA_NUM_CTX") });
    if (common.url === "")
      throw this.#enabled.includes(name) && words(this.#environment.OLLIE_ENABLED_BACKENDS).includes(name)
        ? new Fault("invalid", `the backend "${name}" has no address: set ${variable(name, "URL")}`)
        : new Fault("missing", `no backend is called "${name}"; there are ${this.#available()}`);
    if (!this.#configured(name))
      throw new Fault(
        "invalid",
        `the backend "${name}" has no key: set ${variable(name, "KEY")}, or ${variable(name, "URL")} for a server without`,
      );
    return new OpenAIBackend({ name, ...common });
  }

  #available(): string {
    const names = [...builtIn, ...words(this.#environment.OLLIE_ENABLED_BACKENDS)];
    return [...new Set(names)]
      .filter((name) => !announced.includes(name))
      .sort()
      .join(", ");
  }

  #configured(name: string): boolean {
    return Boolean(this.#variable(name, "URL") ?? this.#variable(name, "KEY"));
  }

  #variable(name: string, what: "URL" | "KEY"): string | undefined {
    return this.#environment[variable(name, what)]?.trim() || undefined;
  }

  #limits(): Limits {
    const idle = seconds(this.#environment, "OLLIE_IDLE_TIMEOUT", 180);
    // A model that is being loaded, or reads a long prompt, says nothing for longer than one that writes.
    return { connect: seconds(this.#environment, "OLLIE_CONNECT_TIMEOUT", 30), first: 2 * idle, idle };
  }
}

/** How a label is spelt in a variable's name: `my-server` → `OLLIE_MY_SERVER_URL`. */
function variable(name: string, what: "URL" | "KEY"): string {
  return `OLLIE_${name.toUpperCase().replace(/[^A-Z0-9]/g, "_")}_${what}`;
}

function seconds(environment: Environment, key: string, otherwise: number): number {
  const text = environment[key]?.trim();
  const value = text ? Number(text) : otherwise;
  if (!(value >= 0)) throw new Fault("invalid", `${key}: "${text}" is no number of seconds (0 = no limit)`);
  return value * 1000;
}

function positive(text: string | undefined, key: string): number | undefined {
  if (!text?.trim()) return undefined;
  const value = Number(text);
  if (!Number.isInteger(value) || value <= 0)
    throw new Fault("invalid", `${key}: "${text}" is no number of tokens`);
  return value;
}

const words = (list: string | undefined): string[] => list?.split(/[\s,]+/).filter(Boolean) ?? [];
const oneLine = (text: string): string => text.replace(/\s+/g, " ").trim();
