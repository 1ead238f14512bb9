/** `elevate/`: how people and scripts see what waits to be allowed, and answer it. */
import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import type { Question } from "../../src/elevate/question.ts";
import { refusal, type Served, serve, take } from "./serve.ts";

let served: Served;
beforeEach(async () => {
  served = await serve();
});
afterEach(async () => {
  await served[Symbol.asyncDispose]();
});

function about(command: string, kind: Question["kind"] = "approval"): Omit<Question, "id"> {
  return { kind, session: "a", agent: "default", tool: "shell", command, cwd: "/srv", host: "here" };
}

/** Asks for something; its answer, and how to take it back. */
function ask(command: string, kind?: Question["kind"]) {
  const stop = new AbortController();
  const answer = served.runtime.approvals.ask(about(command, kind), stop.signal);
  answer.catch(() => {});
  return { answer, withdraw: () => stop.abort() };
}

const write = (text: string) => served.client.writeFile("elevate/ctl", text);
const pending = () => served.client.readText("elevate/pending");

describe("elevate/wait", () => {
  test("blocks until there is a request, gives its line once, and then ends", async () => {
    const wait = await served.client.openFile("elevate/wait");
    const reading = take(wait);
    ask("make install");
    const line = await reading;
    expect(line).toMatch(/^\w{4}\ta\tdefault\tshell\tmake install\n$/);
    expect(await take(wait, line.length)).toBe("");
    expect(await pending()).toBe(line);
  });

  test("gives at once what waits already, to everybody who opens it", async () => {
    const there = await served.client.openFile("elevate/wait");
    ask("first");
    const lines = await Promise.all([take(there), served.client.readText("elevate/wait")]);
    expect(lines[0]).toBe(lines[1]!);
  });

  test("read from its start again, gives the next request and none twice", async () => {
    const wait = await served.client.openFile("elevate/wait");
    ask("one");
    expect(await take(wait)).toContain("\tone\n");
    const next = take(wait);
    ask("two");
    expect(await next).toContain("\ttwo\n");
  });

  test("holds up nothing else, and is ended by a flush", async () => {
    const wait = await served.client.openFile("elevate/wait");
    const stop = new AbortController();
    const reading = wait.read(0, undefined, stop.signal);
    expect(await pending()).toBe("");
    stop.abort();
    expect(await refusal(reading)).toContain("Interrupted system call");
  });

  test("counts as somebody who is there for as long as it is open; without it a request is denied at once", async () => {
    expect(await ask("x").answer).toMatchObject({
      decision: "deny",
      reason: expect.stringContaining("o approve"),
    });
    const wait = await served.client.openFile("elevate/wait");
    const { answer } = ask("y");
    expect(await pending()).toContain("\ty\n");
    await wait.clunk();
    expect(await answer).toMatchObject({ decision: "deny" });
  });

  test("ends with its connection, and with it the one who was there", async () => {
    const other = await served.connect();
    await other.openFile("elevate/wait");
    const { answer } = ask("x");
    other.close();
    expect(await answer).toMatchObject({ decision: "deny" });
  });
});

describe("elevate/ctl", () => {
  /** The id of a request that somebody has been shown. */
  async function shown(command: string, kind?: Question["kind"]) {
    const wait = await served.client.openFile("elevate/wait");
    const asked = ask(command, kind);
    const [id = ""] = (await take(wait)).split("\t");
    return { id, ...asked };
  }

  test.each([
    ["allow ID", { decision: "allow", scope: "once" }],
    ["allow ID once", { decision: "allow", scope: "once" }],
    ["allow ID session\n", { decision: "allow", scope: "session" }],
    ["deny ID", { decision: "deny", reason: "" }],
    ["deny ID not on a Friday\n", { decision: "deny", reason: "not on a Friday" }],
  ] as const)("%s", async (line, answer) => {
    const request = await shown("x");
    await write(line.replace("ID", request.id));
    expect(await request.answer).toEqual(answer);
    expect(await pending()).toBe("");
  });

  test("a password is taken as it is, blanks and all", async () => {
    const request = await shown("x", "password");
    await write(`password ${request.id}  a b \n`);
    expect(await request.answer).toEqual({ decision: "password", password: Buffer.from(" a b ") });
  });

  test("the first answer counts; a second one is told that nothing waits", async () => {
    const request = await shown("x");
    await write(`deny ${request.id}`);
    expect(await refusal(write(`allow ${request.id}`))).toContain("no request");
    expect(await request.answer).toMatchObject({ decision: "deny" });
  });

  test("what makes no sense is refused and decides nothing", async () => {
    const request = await shown("x");
    for (const [line, reason] of [
      ["allow", "which request"],
      ["allow zzzzz", "no request zzzzz"],
      [`allow ${request.id} forever`, "once or for the session"],
      [`permit ${request.id}`, "unknown verb permit"],
      [`password ${request.id} secret`, "asks for an approval"],
      [`allow ${request.id}\nallow zzzzz`, "no request zzzzz"],
      ["\n", "empty command"],
    ] as const)
      expect(await refusal(write(line))).toContain(reason);
    expect(await pending()).toContain(request.id);
    expect(await served.client.readText("lasterr")).not.toContain("secret");
  });

  test("who was shown a request may close the file to think about it", async () => {
    const wait = await served.client.openFile("elevate/wait");
    const request = ask("x");
    const [id = ""] = (await take(wait)).split("\t");
    await wait.clunk();
    await write(`allow ${id}`);
    expect(await request.answer).toMatchObject({ decision: "allow" });
  });

  test("a request that was withdrawn waits no more", async () => {
    const request = await shown("x");
    request.withdraw();
    expect(await pending()).toBe("");
    expect(await refusal(write(`allow ${request.id}`))).toContain("no request");
  });
});

test("what is shown is one line that no terminal obeys, whole", async () => {
  const wait = await served.client.openFile("elevate/wait");
  const long = "x".repeat(200_000);
  ask(`echo a\tb\n\x1b[2J\u202e${long}`);
  const shown = await pending();
  expect(shown.split("\t")).toHaveLength(5);
  expect(shown).toContain(`echo a␉b⏎␛[2J<U+202E>${long}\n`);
  await wait.clunk();
});

test("modes are those of files that only their owner may use", async () => {
  expect(await refusal(served.client.openFile("elevate/wait", 1))).toContain("permission denied");
  expect(await refusal(served.client.readText("elevate/ctl"))).toContain("permission denied");
  expect(await refusal(served.client.readText("elevate/nothing"))).toContain("pending, wait and ctl");
});
