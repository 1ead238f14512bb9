/** `elevate/`: what waits to be allowed by the user. Only the owner of the server sees it. */
import type { Approvals, Reader } from "../elevate/approvals.ts";
import { type Answer, lineOf, type Scope, scopes } from "../elevate/question.ts";
import { Fault } from "../fault.ts";
import type { File, Maybe, OpenFile, Request } from "../ninep/file.ts";
import type { Stamp } from "../session/live.ts";
import { type Context, fixedSite, rootPaths } from "./context.ts";
import type { Content, Row } from "./files.ts";
import { Folder, fileOf, filesOf } from "./folder.ts";
import { text } from "./reading.ts";
import { nextAnswer } from "./wait.ts";
import { verbs } from "./writing.ts";

/** Length that Tstat tells of `wait`; as for other files that wait, none of its answers is as long. */
const toldLength = 1 << 20;

/**
 * Gives one request an open, then the end of file; from the start again, it waits for another that this open has not given yet. As
 * long as it is open somebody counts as being there.
 */
const wait: Content<Approvals> = {
  look: () => ({ length: toldLength, print: () => 0 }),
  open: (site) => new WaitFile(site.target),
};

class WaitFile implements OpenFile {
  readonly #reader: Reader;
  #answer: Uint8Array = new Uint8Array(0);

  constructor(private readonly approvals: Approvals) {
    this.#reader = approvals.reader();
  }

  read(offset: number, count: number, request: Request): Maybe<Uint8Array> {
    if (offset > 0) return this.#answer.subarray(offset, offset + count);
    return this.#next(count) ?? nextAnswer(() => this.#next(count), [this.approvals], request.signal);
  }

  close(): void {
    this.#reader.close();
  }

  #next(count: number): Uint8Array | undefined {
    const question = this.#reader.next();
    if (!question) return undefined;
    this.#answer = new TextEncoder().encode(`${lineOf(question)}\n`);
    return this.#answer.subarray(0, count);
  }
}

/** A line of `ctl`. What it says of a password never gets into a message. */
function parse(line: string): { id: string; answer: Answer } {
  const [, verb = "", id = "", rest = ""] = /^\s*(\S*)[ \t]*(\S*)[ \t]?(.*)$/s.exec(line)!;
  if (!["allow", "deny", "password"].includes(verb))
    throw new Fault(
      "invalid",
      `unknown verb ${verb || '""'}; there are allow ID [once|session], deny ID [reason], password ID PASSWORD`,
    );
  if (id === "") throw new Fault("invalid", `${verb} which request? elevate/pending lists their ids`);
  if (verb === "deny") return { id, answer: { decision: "deny", reason: rest.trim() } };
  if (verb === "password") return { id, answer: { decision: "password", password: Buffer.from(rest) } };
  const scope = rest.trim() || "once";
  if (!scopes.includes(scope as Scope))
    throw new Fault("invalid", `allow ${id} ${scope}: a request is allowed once or for the session`);
  return { id, answer: { decision: "allow", scope: scope as Scope } };
}

const ctl = verbs<Approvals>(
  (approvals, line) => {
    const { id, answer } = parse(line);
    approvals.check(id, answer);
  },
  async (approvals, line) => {
    const { id, answer } = parse(line);
    approvals.answer(id, answer, "owner");
  },
);

const rows: readonly Row<Approvals>[] = [
  {
    name: "pending",
    mode: 0o400,
    changes: "content",
    content: text((approvals) => approvals.pending().map(lineOf).join("\n")),
  },
  { name: "wait", mode: 0o400, changes: [], content: wait },
  { name: "ctl", mode: 0o200, changes: [], content: ctl },
];

export class Elevate extends Folder {
  readonly name = "elevate";
  protected readonly path = rootPaths.elevate;
  protected override readonly mode = 0o500;

  constructor(context: Context, folder: File) {
    super(context, folder);
  }

  protected when(): Stamp {
    return { vers: 0, mtime: this.context.started };
  }

  protected child(name: string): File {
    const file = fileOf(rows, name, this.#site(), rootPaths.elevateFiles, this);
    if (file) return file;
    throw new Fault("missing", `elevate has no ${name}; there are pending, wait and ctl`);
  }

  protected children(): File[] {
    return filesOf(rows, this.#site(), rootPaths.elevateFiles, this);
  }

  #site() {
    return fixedSite(this.context, this.context.runtime.approvals);
  }
}
