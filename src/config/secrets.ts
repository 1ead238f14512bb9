/**
 * Which values are secret, and how a text is rid of them. Whoever shows or keeps a text has it masked here: `[masked: NAME]` stands in
 * the place of the value of the variable NAME.
 *
 * This is against accidents: a tool that prints its environment, a file that is read, an error that quotes a request. A program that
 * means to hide a value from it (reversed, spelt letter by letter) can.
 */

/** Keys and tokens of ollie's own backends; `OLLIE_ARG_…` are arguments of a tool call. */
const ownKey = /^OLLIE_(?!ARG_)\w*(?:_KEY|_TOKEN)$/;
/** What people call variables that hold secrets. */
const secretName = /(?:^|_)(?:KEY|TOKEN|SECRET)$|(?:PASSWORD|PASSWD|PASSPHRASE)$/i;
/** Characters that a value has at least: shorter ones are met by chance, and a text full of masks helps nobody. */
const shortest = 8;

/** Whether the variable holds a key or token of ollie's own, which no other program is ever given. */
export function isOwnKey(name: string): boolean {
  return ownKey.test(name);
}

/** Whether the variable holds a secret, by its name. */
export function looksSecret(name: string): boolean {
  return secretName.test(name);
}

/** Rids a text that comes in pieces of secrets, also of those that lie across two of them. */
export interface Masker {
  /** What can be said by now; the beginning of what may be a secret is kept until the rest has come. */
  push(text: string): string;
  /** What was kept. */
  end(): string;
}

export class Secrets {
  /** Each form in which a value may stand in a text, with what stands there instead. */
  readonly #forms = new Map<string, string>();
  #version = 0;
  #search?: Search;
  #searchOf = "";

  /** @param outer what it knows is masked as well */
  constructor(private readonly outer?: Secrets) {}

  /** Keys of backends, and passwords within their addresses. What has been learnt once stays: an old key may still be valid. */
  learnConfig(environment: Readonly<Record<string, string | undefined>>): void {
    for (const [name, value] of Object.entries(environment)) {
      if (value && isOwnKey(name)) this.#learn(name, value);
      const password = /^OLLIE_\w+_URL$/.test(name) && value ? passwordIn(value) : "";
      if (password) this.#learn(name, password);
    }
  }

  /** Of a session's environment those whose names say that they are secret. */
  learnSession(environment: Readonly<Record<string, string>>): void {
    for (const [name, value] of Object.entries(environment)) if (looksSecret(name)) this.#learn(name, value);
  }

  /** The text without secrets; where there are none in it, the very same. */
  mask(text: string): string {
    const search = this.#ready();
    return search ? text.replace(search.pattern, (form) => search.masks.get(form)!) : text;
  }

  /** For a text that comes in pieces. */
  stream(): Masker {
    let rest = "";
    return {
      push: (piece) => {
        const search = this.#ready();
        if (!search) return piece;
        const text = rest + piece;
        let end = 0;
        const masked = text.replace(search.pattern, (form, at: number) => {
          end = at + form.length;
          return search.masks.get(form)!;
        });
        const kept = begun(text, end, search);
        rest = text.slice(text.length - kept);
        return masked.slice(0, masked.length - kept);
      },
      end: () => {
        const text = rest;
        rest = "";
        return text;
      },
    };
  }

  #learn(name: string, value: string): void {
    if (value.length < shortest) return;
    for (const form of formsOf(value)) {
      if (this.#forms.has(form)) continue;
      this.#forms.set(form, `[masked: ${name}]`);
      this.#version++;
    }
  }

  #ready(): Search | undefined {
    const { outer } = this;
    const version = `${this.#version} ${outer ? outer.#version : 0}`;
    if (version === this.#searchOf) return this.#search;
    const masks = new Map([...this.#forms, ...(outer ? outer.#forms : [])]);
    this.#searchOf = version;
    this.#search = masks.size > 0 ? makeSearch(masks) : undefined;
    return this.#search;
  }
}

interface Search {
  masks: ReadonlyMap<string, string>;
  forms: readonly string[];
  pattern: RegExp;
  longest: number;
}

function makeSearch(masks: Map<string, string>): Search {
  // The first alternative that fits is taken: of a value that another one begins with, the whole shall go.
  const forms = [...masks.keys()].sort((a, b) => b.length - a.length);
  const pattern = new RegExp(forms.map((form) => form.replace(/[\\^$.*+?()[\]{}|]/g, "\\$&")).join("|"), "g");
  return { masks, forms, pattern, longest: forms[0]!.length };
}

/** Characters at the end of `text`, behind `from`, with which one of the forms begins. */
function begun(text: string, from: number, { forms, longest }: Search): number {
  for (let at = Math.max(from, text.length - longest + 1); at < text.length; at++) {
    const first = text[at]!;
    const tail = text.slice(at);
    if (forms.some((form) => form[0] === first && form.startsWith(tail))) return tail.length;
  }
  return 0;
}

/** The value as it is, in JSON, in a URL, and in Base64, alone and within a longer text. */
function formsOf(value: string): Set<string> {
  const whole = Buffer.from(value).toString("base64");
  const forms = new Set([value, JSON.stringify(value).slice(1, -1), whole]);
  if (value.isWellFormed()) forms.add(encodeURIComponent(value));
  for (const before of [0, 1, 2]) {
    const form = base64Within(value, before);
    for (const one of [form, form.replaceAll("+", "-").replaceAll("/", "_")])
      if (one.length >= shortest) forms.add(one);
  }
  return forms;
}

/** What the value becomes in the Base64 of a text that has `before` bytes, modulo 3, ahead of it: the characters that are its alone. */
function base64Within(value: string, before: number): string {
  const bytes = Buffer.concat([Buffer.alloc(before), Buffer.from(value)]);
  const text = bytes.toString("base64").replace(/=+$/, "");
  const shared = bytes.length % 3 === 0 ? 0 : 1;
  return text.slice(Math.ceil((before * 8) / 6), text.length - shared);
}

function passwordIn(url: string): string {
  try {
    return decodeURIComponent(new URL(url).password);
  } catch {
    return "";
  }
}
