/** The cable between two network namespaces: link.c, or a pair of virtual devices where nothing is asked of it. */
import { environment, succeed } from "./hold.ts";

export interface LinkOptions {
  /** Milliseconds one way, and up to so many more by chance. */
  delay?: number;
  jitter?: number;
  /** Part of the frames that is lost: 0.01 = one of a hundred. */
  loss?: number;
  /** kbit/s each way; unset = as fast as it goes. */
  rate?: number;
}

export interface End {
  /** A process in the namespace. */
  pid: number;
  /** What the device is called there. */
  name: string;
}

/** A cable without any properties. */
export function plug(a: End, b: End): void {
  const end = (each: End) => ["name", each.name, "netns", String(each.pid)];
  succeed(["ip", "link", "add", ...end(a), "type", "veth", "peer", ...end(b)]);
}

export class Link {
  readonly #child: Bun.Subprocess<"pipe", "pipe", "pipe">;
  readonly #said: AsyncIterator<Uint8Array>;

  private constructor(child: Bun.Subprocess<"pipe", "pipe", "pipe">) {
    this.#child = child;
    this.#said = child.stdout[Symbol.asyncIterator]();
  }

  /** @param program the compiled link.c */
  static async make(program: string, a: End, b: End, options: LinkOptions): Promise<Link> {
    const { delay = 0, jitter = 0, loss = 0, rate = 0 } = options;
    const numbers = [delay, jitter, Math.round(loss * 1e6), rate].map(String);
    const child = Bun.spawn([program, String(a.pid), a.name, String(b.pid), b.name, ...numbers], {
      env: environment,
      stdin: "pipe",
      stdout: "pipe",
      stderr: "pipe",
    });
    const link = new Link(child);
    const { done } = await link.#said.next();
    if (done) throw new Error(`no link: ${await new Response(child.stderr).text()}`);
    return link;
  }

  /** Whether frames vanish, with nothing that tells either end; in force when this resolves. */
  async blackHole(on: boolean): Promise<void> {
    this.#child.stdin.write(on ? "1" : "0");
    this.#child.stdin.flush();
    await this.#said.next();
  }

  async end(): Promise<void> {
    this.#child.stdin.end();
    await this.#child.exited;
  }
}
