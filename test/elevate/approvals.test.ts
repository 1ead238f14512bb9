/** Who is asked, whose answer counts, and what becomes of a question that nobody answers. */
import { describe, expect, test } from "bun:test";
import { about, approvals, ask, FakeBroker, until } from "./helper.ts";

const line = (answer: object) => `${JSON.stringify(answer)}\n`;

describe("a question", () => {
  test("that nobody can answer is denied at once, with what to do", async () => {
    const { approvals: all } = approvals({ socket: () => "/nowhere/elevate.sock" });
    expect(await ask(all)).toEqual({ decision: "deny", reason: expect.stringContaining("olliesrv elevate") });
    expect(all.pending()).toEqual([]);
  });

  test("that nobody answers in time is denied", async () => {
    const { approvals: all } = approvals({ limit: () => 20 });
    all.reader();
    expect(await ask(all)).toEqual({ decision: "deny", reason: "nobody answered within 0.02 s" });
  });

  test("waits on while somebody else is there", async () => {
    const { approvals: all } = approvals();
    const [one, other] = [all.reader(), all.reader()];
    const answer = ask(all);
    one.close();
    one.close();
    expect(all.pending()).toHaveLength(1);
    other.close();
    expect(await answer).toMatchObject({ decision: "deny" });
  });

  test("waits on for who has been shown it, and a next one for a moment longer", async () => {
    const { approvals: all } = approvals();
    const reader = all.reader();
    const first = ask(all, "first");
    const { id } = reader.next()!;
    reader.close();
    all.answer(id, { decision: "allow", scope: "once" }, "owner");
    expect(await first).toMatchObject({ decision: "allow" });
    const second = ask(all, "second");
    expect(all.pending()).toHaveLength(1);
    expect(await second).toMatchObject({ decision: "deny" });
  });

  test("that is withdrawn rejects, and is gone", async () => {
    const { approvals: all } = approvals();
    const reader = all.reader();
    const stop = new AbortController();
    const answer = all.ask(about("x"), stop.signal);
    stop.abort(new Error("stopped"));
    expect(answer).rejects.toThrow("stopped");
    expect([all.pending(), reader.next()]).toEqual([[], undefined]);
  });

  test("and its answer are logged, the command whole but for secrets, and never a password", async () => {
    const { approvals: all, log } = approvals();
    const reader = all.reader();
    const mask = (text: string) => text.replace("sk-1234", "***");
    const asked = all.ask(
      about(`curl -H sk-1234 ${"y".repeat(5000)}`, "password"),
      new AbortController().signal,
      mask,
    );
    all.answer(reader.next()!.id, { decision: "password", password: Buffer.from("hunter2") }, "owner");
    await asked;
    expect(log.map(({ msg }) => msg)).toEqual(["elevation asked for", "elevation answered"]);
    expect(log[1]).toMatchObject({
      session: "s",
      agent: "a",
      tool: "shell",
      decision: "password",
      by: "owner",
    });
    expect(log[0]!.command).toBe(`curl -H *** ${"y".repeat(5000)}`);
    expect(JSON.stringify(log)).not.toMatch(/hunter2|sk-1234|104,117,110/);
  });
});

describe("a broker", () => {
  test("gets the question as a line of JSON, the command exactly as it is", async () => {
    const broker = new FakeBroker(({ id }, write) =>
      write(line({ id, decision: "allow", scope: "session" })),
    );
    const { approvals: all, log } = approvals({ socket: () => broker.path });
    expect(await ask(all, "echo a\n\x1b[2J")).toEqual({ decision: "allow", scope: "session" });
    expect(broker.told[0]).toEqual({ id: expect.any(String), ...about("echo a\n\x1b[2J") });
    expect(log.at(-1)).toMatchObject({ by: "broker", decision: "allow", scope: "session" });
    await until("it was hung up on", () => broker.connections === 0);
    expect(broker.told).toHaveLength(1);
    broker.stop();
  });

  test.each([
    [{ decision: "allow" }, { decision: "allow", scope: "once" }],
    [{ decision: "deny" }, { decision: "deny", reason: "" }],
    [
      { decision: "deny", reason: "no" },
      { decision: "deny", reason: "no" },
    ],
  ])("that writes %j means %j", async (written, meant) => {
    const broker = new FakeBroker(({ id }, write) => write(line({ id, ...written })));
    expect(await ask(approvals({ socket: () => broker.path }).approvals)).toEqual(meant as never);
    broker.stop();
  });

  test("may fill in one form for both answers, and hang up without an end of its line", async () => {
    const forms = [
      { decision: "allow", scope: null, reason: null },
      { decision: "allow", scope: "", reason: "" },
      { decision: "deny", scope: "once", reason: "no" },
    ];
    for (const form of forms) {
      const broker = new FakeBroker(({ id }, write) => {
        write(JSON.stringify({ id, ...form }));
        broker.hangUp();
      });
      const answer = await ask(approvals({ socket: () => broker.path }).approvals);
      expect(answer).toEqual(
        form.decision === "allow" ? { decision: "allow", scope: "once" } : { decision: "deny", reason: "no" },
      );
      broker.stop();
    }
  });

  test("gives a password where one is asked for", async () => {
    const broker = new FakeBroker(({ id }, write) => write(line({ id, password: "pä ss" })));
    const { approvals: all } = approvals({ socket: () => broker.path });
    expect(await ask(all, "x", "password")).toEqual({
      decision: "password",
      password: Buffer.from("pä ss"),
    });
    broker.stop();
  });

  test("is heard out when it writes nonsense first; none of that decides anything", async () => {
    const broker = new FakeBroker(({ id }, write) => {
      write("not json\n[]\n");
      write(line({ id: "other", decision: "allow" }));
      write(line({ id, decision: "maybe" }));
      write(line({ id, decision: "allow", scope: "always" }));
      write(line({ id, password: "secret" }));
      write(line({ id, decision: "deny", reason: "at last" }));
    });
    const { approvals: all, log } = approvals({ socket: () => broker.path });
    expect(await ask(all)).toEqual({ decision: "deny", reason: "at last" });
    expect(log.filter(({ level }) => level === 40)).toHaveLength(6);
    expect(JSON.stringify(log)).not.toContain("secret");
    broker.stop();
  });

  test("that hangs up leaves nobody, or the others", async () => {
    const broker = new FakeBroker();
    const { approvals: all } = approvals({ socket: () => broker.path });
    const alone = ask(all);
    await until("it was asked", () => broker.told.length === 1);
    broker.hangUp();
    expect(await alone).toMatchObject({ decision: "deny" });
    const reader = all.reader();
    const withReader = ask(all);
    await until("it was asked", () => broker.told.length === 2);
    broker.hangUp();
    all.answer(reader.next()!.id, { decision: "allow", scope: "once" }, "owner");
    expect(await withReader).toMatchObject({ decision: "allow" });
    broker.stop();
  });

  test("is told when somebody else was faster, or the question is withdrawn", async () => {
    const broker = new FakeBroker();
    const { approvals: all } = approvals({ socket: () => broker.path });
    const reader = all.reader();
    const answer = ask(all);
    await until("it was asked", () => broker.told.length === 1);
    all.answer(reader.next()!.id, { decision: "deny", reason: "" }, "owner");
    expect(await answer).toMatchObject({ decision: "deny" });
    await until("it was told", () => broker.told.length === 2);
    expect(broker.told[1]).toMatchObject({ decided: "deny" });
    const stop = new AbortController();
    all.ask(about("x"), stop.signal).catch(() => {});
    await until("it was asked", () => broker.told.length === 3);
    stop.abort();
    await until("it was told", () => broker.told.length === 4);
    expect(broker.told[3]).toMatchObject({ decided: "withdrawn" });
    broker.stop();
  });
});
