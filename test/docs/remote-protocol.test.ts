/** doc/REMOTE_PROTOCOL.md: its examples are what `ollie-remote serve` answers, and it has all methods and codes. */
import { afterAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import { mkdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { capabilities } from "../../src/remote/protocol/hello.ts";
import { Machine } from "../remote/host/machine.ts";
import { codeBlocks, codeSpans, prose, read, section, top } from "./markdown.ts";

setDefaultTimeout(60_000);

type Message = { id?: unknown; method?: string } & Record<string, unknown>;

const document = read("doc/REMOTE_PROTOCOL.md");
const examples = codeBlocks(document).filter(({ info }) => info.startsWith("jsonl"));

/** What the document calls the home folder of the host's user. */
const alice = "/home/alice";

interface Line {
  from: "client" | "host";
  message: Message;
}

/** A message goes on until the next arrow. */
function linesOf(text: string): Line[] {
  return text
    .split(/^(?=[→←] )/m)
    .filter((part) => part !== "")
    .map((part) => ({ from: part[0] === "→" ? "client" : "host", message: JSON.parse(part.slice(2)) }));
}

/** Values that no two hosts or runs have in common, by their keys: only that they are there, and what kind they are, is compared. */
const varying = new Set(
  (
    "version digest os arch libc kernel user shell sandbox clock boot persist client created used started ended mtime bytes base freed until " +
    "platform program password"
  ).split(" "),
);

function alike(value: unknown, key = "", kind = ""): unknown {
  if (varying.has(key)) return typeof value;
  // A folder takes what its file system gives it.
  if (key === "size" && kind === "dir") return "number";
  if (Array.isArray(value)) return value.map((item) => alike(item));
  if (typeof value !== "object" || value === null) return value;
  const { kind: own = "", status } = value as { kind?: string; status?: string };
  // Whether what was accepted runs already is a matter of microseconds.
  if (status === "accepted" || status === "running") {
    const { started: _, ...rest } = value as { started?: number };
    return alike({ ...rest, status: "not over" });
  }
  const entries = Object.entries(value).filter(([name]) => name !== "jsonrpc");
  return Object.fromEntries(entries.map(([name, inner]) => [name, alike(inner, name, own)]));
}

/** One `ollie-remote serve`, spoken to in plain lines. */
class Serve {
  readonly #child;
  readonly #heard: Message[] = [];

  constructor(private readonly machine: Machine) {
    const program = join(top, "src/ollie-remote.ts");
    this.#child = Bun.spawn([process.execPath, program, "serve"], {
      env: machine.environment,
      stdin: "pipe",
      stdout: "pipe",
      stderr: "ignore",
    });
    void this.#hear();
  }

  async #hear(): Promise<void> {
    let rest = "";
    const decoder = new TextDecoder();
    for await (const bytes of this.#child.stdout) {
      const lines = (rest + decoder.decode(bytes, { stream: true })).split("\n");
      rest = lines.pop()!;
      this.#heard.push(...lines.map((line) => JSON.parse(line.replaceAll(this.machine.home, alice))));
    }
  }

  async say(message: Message): Promise<void> {
    const line = JSON.stringify({ jsonrpc: "2.0", ...message }).replaceAll(alice, this.machine.home);
    this.#child.stdin.write(`${line}\n`);
    await this.#child.stdin.flush();
  }

  /** The next answer with that id, or the next notification of that name and stream. */
  async next({ id, method, params }: Message): Promise<Message> {
    const stream = (params as { stream?: string } | undefined)?.stream;
    for (;;) {
      const at = this.#heard.findIndex((heard) =>
        id === undefined
          ? heard.method === method && (heard.params as { stream?: string }).stream === stream
          : heard.id === id,
      );
      if (at >= 0) return this.#heard.splice(at, 1)[0]!;
      await Bun.sleep(5);
    }
  }
}

describe("the examples", () => {
  const machine = new Machine();
  afterAll(() => machine.close());
  mkdirSync(join(machine.home, "project"));
  let serve: Serve;

  // One conversation, which each example goes on with.
  test.each(examples.map(({ line, info, text }) => [line, info, text] as const))(
    "of line %i",
    async (_, info, text) => {
      if (info.endsWith("connect")) serve = new Serve(machine);
      for (const { from, message } of linesOf(text)) {
        if (from === "client") await serve.say(message);
        else {
          const heard = await serve.next(message);
          expect(heard.jsonrpc).toBe("2.0");
          expect(alike(heard)).toEqual(alike(message));
        }
      }
    },
  );

  test("use every capability", () => {
    for (const name of capabilities) expect(document).toContain(`"${name}"`);
  });
});

/** Of all sources of both ends. */
const sources = [...new Bun.Glob("src/{remote,ssh,session}/**/*.ts").scanSync({ cwd: top })]
  .map((file) => readFileSync(join(top, file), "utf8"))
  .join("\n");

/** Names that the host's end answers, as it lists them. */
function methods(): string[] {
  const files = ["bridge.ts", "host-methods.ts", "session-methods.ts", "files/methods.ts"];
  const text = files.map((file) => readFileSync(join(top, "src/remote/host", file), "utf8")).join("\n");
  const found = text.matchAll(
    /(?:(?:on|plain)\("|^\s+"(?=[\w.]+":))((?:session|op|file|blob|tools|sudo|project)\.\w+|execute|ping)"/gm,
  );
  return [...new Set([...found].map((match) => match[1]!))];
}

test("every method has an example", () => {
  const asked = examples.flatMap(({ text }) =>
    linesOf(text).flatMap(({ from, message }) => (from === "client" ? [message.method!] : [])),
  );
  expect(methods().length).toBeGreaterThan(25);
  expect(methods().filter((name) => !asked.includes(name))).toEqual([]);
});

test("every code is in its table, and no other", () => {
  const families = "ssh|boot|proto|frame|caps|session|op|policy|sandbox|file|tools|blob";
  const code = new RegExp(`"((?:${families})\\.[a-z_]+)"`, "g");
  const quoted = new Set([...sources.matchAll(code)].map((match) => match[1]!));
  // The last one is a file.
  const other = new Set([...methods(), ...capabilities, "session.json"]);
  const made = [...quoted].filter((name) => !other.has(name));
  const table = section(document, "Errors");
  const spans = codeSpans(prose(table));
  const told = [
    ...spans.filter((span) => code.test(span) || new RegExp(`^(?:${families})\\.[a-z_]+$`).test(span)),
    ...[...table.matchAll(/^\| `ssh\.\*` \|(.*)\|$/gm)].flatMap(([, row]) =>
      codeSpans(row!).map((name) => `ssh.${name}`),
    ),
  ];
  expect(made.filter((name) => !told.includes(name)).sort()).toEqual([]);
  expect(told.filter((name) => !quoted.has(name)).sort()).toEqual([]);
});
