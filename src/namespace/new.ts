/** `session/new` and `agent/new`: clone files, as `/net/tcp/clone` is one. */
import { Fault } from "../fault.ts";
import type { CloseReason, OpenFile, Request } from "../ninep/file.ts";
import type { Keys, LiveAgent } from "../session/live.ts";
import type { Content } from "./files.ts";
import { ended } from "./reading.ts";
import { parseKeys } from "./words.ts";
import { RequestWriter } from "./writing.ts";

/** How one kind of thing is made. `by`: the agent whose tool asks for it; undefined: the owner. */
export interface Maker<T, Made extends { readonly name: string }> {
  template(target: T, by?: LiveAgent): string;
  create(target: T, keys: Keys, by?: LiveAgent): Promise<Made>;
  amend(target: T, made: Made, keys: Keys, by?: LiveAgent): Promise<void>;
}

/** A fid that reads as the template until something was made through it, and as the name of that afterwards. */
export function clone<T, Made extends { readonly name: string }>(maker: Maker<T, Made>): Content<T> {
  return {
    look: () => ({ length: 0, print: () => 0 }),
    open: ({ target, context }) => new CloneFile(target, maker, context.view.agent),
  };
}

class CloneFile<T, Made extends { readonly name: string }> implements OpenFile {
  readonly #writer = new RequestWriter((text) => this.#request(text));
  #made?: Made;
  /** Nothing has been made since what was asked for made no sense. */
  #failed = false;
  #writing?: Promise<unknown>;
  #answer = new Uint8Array(0);
  /** Where the answer begins: the descriptor of a shell has one offset for its writes and its reads. */
  #base: number | undefined;

  constructor(
    private readonly target: T,
    private readonly maker: Maker<T, Made>,
    private readonly by: LiveAgent | undefined,
  ) {}

  /** A read says that the write before it is over, also where that may still be under way or was held back. */
  async read(offset: number, count: number): Promise<Uint8Array> {
    await this.#writing;
    await this.#writer.finish();
    if (this.#failed) throw new Refused();
    if (this.#base === undefined || offset === 0 || offset < this.#base) {
      this.#base = this.#made ? offset : 0;
      const text = this.#made ? this.#made.name : this.maker.template(this.target, this.by);
      this.#answer = new TextEncoder().encode(ended(text));
    }
    const from = offset - this.#base;
    return this.#answer.subarray(from, from + count);
  }

  write(offset: number, data: Uint8Array, request: Request): Promise<number> {
    const written = this.#writer.write(offset, data, request);
    this.#writing = written.catch(() => undefined);
    return written;
  }

  close(reason: CloseReason): Promise<void> {
    return this.#writer.close(reason);
  }

  async #request(text: string): Promise<void> {
    // A shell that sends one write a line goes on after an error; the rest must not make something on its own.
    if (this.#failed) throw new Refused();
    try {
      const keys = parseKeys(text);
      if (this.#made) await this.maker.amend(this.target, this.#made, keys, this.by);
      else this.#made = await this.maker.create(this.target, given(keys), this.by);
      this.#base = undefined;
    } catch (error) {
      this.#failed = !this.#made;
      throw error;
    }
  }
}

class Refused extends Fault {
  constructor() {
    super("invalid", "the first write on this open file was refused; open new again");
  }
}

/** An empty value in a create is a key left out, as in the template. */
function given(keys: Keys): Keys {
  return new Map([...keys].filter(([, value]) => value !== ""));
}
