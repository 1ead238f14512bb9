import { expect, test } from "bun:test";
import { z } from "zod";
import { CodedFault, Fault } from "../../../src/fault.ts";
import { coded } from "../../../src/remote/protocol/errors.ts";
import { type Handler, Peer, type PeerOptions } from "../../../src/remote/protocol/peer.ts";

/** Two ends that hear each other. */
function pair(left: Partial<PeerOptions>, right: Partial<PeerOptions>) {
  const written = { left: 0, right: 0 };
  const a: Peer = new Peer({
    sink: {
      async write(bytes) {
        written.left++;
        b.receive(bytes);
      },
    },
    ...left,
  });
  const b: Peer = new Peer({
    sink: {
      async write(bytes) {
        written.right++;
        a.receive(bytes);
      },
    },
    ...right,
  });
  return { a, b, written };
}

const answering = (handlers: Record<string, Handler>) => pair({}, { handlers });

async function failure(promise: Promise<unknown>): Promise<Error> {
  return promise.then(
    () => {
      throw new Error("it did not fail");
    },
    (error) => error as Error,
  );
}

test("requests run side by side, and answers find theirs in any order", async () => {
  const gates = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  const { a } = answering({
    async wait(params) {
      const n = params as number;
      await gates[n]!.promise;
      return n;
    },
  });
  const done: number[] = [];
  const first = a.request<number>("wait", 0).then((n) => done.push(n));
  const second = a.request<number>("wait", 1).then((n) => done.push(n));
  gates[1]!.resolve();
  await second;
  gates[0]!.resolve();
  await first;
  expect(done).toEqual([1, 0]);
});

test("an error keeps its code, kind and sentence on the way", async () => {
  const { a } = answering({
    coded() {
      throw coded("op.unknown", "there is no such operation", { hint: "ask op.list" });
    },
    plain() {
      throw new Fault("full", "no space left");
    },
  });
  const first = (await failure(a.request("coded", {}))) as CodedFault;
  expect(first).toBeInstanceOf(CodedFault);
  expect([first.code, first.kind, first.message]).toEqual([
    "op.unknown",
    "missing",
    "there is no such operation; ask op.list",
  ]);
  const second = (await failure(a.request("plain", {}))) as Fault;
  expect([second.kind, second.message]).toEqual(["full", "no space left"]);
});

test("a method that nobody knows is an error, and of a notification nothing comes back", async () => {
  const { a, written } = answering({});
  expect((await failure(a.request("nonsense", {}))).message).toContain("there is no method nonsense");
  const before = written.right;
  a.notify("nonsense", {});
  await a.flush();
  await Bun.sleep(0);
  expect(written.right).toBe(before);
});

test("names that every object has are no methods", async () => {
  const { a } = answering({});
  expect((await failure(a.request("constructor", {}))).message).toContain("there is no method");
});

test("an answer that does not come is not waited for", async () => {
  const { a } = answering({ never: () => new Promise(() => {}) });
  const error = (await failure(a.request("never", {}, { limit: 10 }))) as CodedFault;
  expect(error.code).toBe("proto.timeout");
});

test("who gives up tells the other end, whose work is aborted", async () => {
  const aborted = Promise.withResolvers<void>();
  const { a } = answering({
    work: (_, { signal }) =>
      new Promise((_resolve, reject) => {
        signal.addEventListener("abort", () => {
          aborted.resolve();
          reject(signal.reason);
        });
      }),
  });
  const stop = new AbortController();
  const request = a.request("work", {}, { signal: stop.signal });
  await Bun.sleep(1);
  stop.abort(new Fault("interrupted", "cancelled"));
  expect((await failure(request)).message).toBe("cancelled");
  await aborted.promise;
});

test("an answer that makes no sense is an error", async () => {
  const { a } = answering({ answer: () => ({ n: "one" }) });
  const error = (await failure(
    a.request("answer", {}, { schema: z.object({ n: z.number() }) }),
  )) as CodedFault;
  expect(error.code).toBe("proto.answer");
});

test("a line that is too long is told, and the connection goes on", async () => {
  const complaints: string[] = [];
  const { a } = pair(
    { onComplaint: (what) => complaints.push(what) },
    { limit: 200, handlers: { echo: (params) => params } },
  );
  const long = failure(a.request("echo", "x".repeat(500), { limit: 50 }));
  expect(await a.request<string>("echo", "short")).toBe("short");
  await long;
  // The error has no id, since nobody has read whose it was.
  expect(complaints.join()).toContain("an answer that nobody waits for: null");
});

test("three lines in a row that are no JSON break the connection; fewer do not", async () => {
  let broken: Error | undefined;
  const { a, b } = pair(
    {},
    { handlers: { echo: (params) => params }, onBroken: (error) => (broken = error) },
  );
  const nonsense = new TextEncoder().encode("motd\nwelcome\n");
  b.receive(nonsense);
  expect(await a.request<number>("echo", 1)).toBe(1);
  b.receive(nonsense);
  expect(broken).toBeUndefined();
  b.receive(nonsense);
  expect((broken as CodedFault | undefined)?.code).toBe("proto.garbage");
  expect(b.closed).toBe(true);
});

test("all that is said within a tick is one write", async () => {
  const { a, written } = answering({ echo: (params) => params });
  await Promise.all(Array.from({ length: 20 }, (_, n) => a.request("echo", n)));
  expect(written.left).toBe(1);
});

test("a sink that takes its time holds back, and nothing is lost or changes places", async () => {
  const seen: string[] = [];
  let writing = 0;
  let most = 0;
  const peer = new Peer({
    sink: {
      async write(bytes) {
        most = Math.max(most, ++writing);
        await Bun.sleep(1);
        seen.push(new TextDecoder().decode(bytes));
        writing--;
      },
    },
  });
  for (let n = 0; n < 50; n++) {
    peer.notify("n", n);
    if (n % 10 === 0) await Bun.sleep(1);
  }
  await peer.flush();
  const params = seen
    .join("")
    .trim()
    .split("\n")
    .map((line) => JSON.parse(line).params);
  expect(params).toEqual(Array.from({ length: 50 }, (_, n) => n));
  expect(most).toBe(1);
});

test("whoever waits when the connection ends gets the reason, and so does who asks later", async () => {
  const { a } = answering({ never: () => new Promise(() => {}) });
  const waiting = failure(a.request("never", {}));
  a.close(coded("ssh.dropped", "the link broke", { retry: true }));
  expect(((await waiting) as CodedFault).code).toBe("ssh.dropped");
  expect(((await failure(a.request("never", {}))) as CodedFault).code).toBe("ssh.dropped");
});

test("what no handler knows can be passed on as it is", async () => {
  const passed: string[] = [];
  const b = new Peer({
    sink: { write: async () => {} },
    handlers: { mine: () => 1 },
    passOn: (line) => passed.push(line) > 0,
  });
  const line = '{"jsonrpc":"2.0","id":7,"method":"theirs","params":{"a":  1}}';
  b.receive(new TextEncoder().encode(`${line}\n{"jsonrpc":"2.0","id":8,"method":"mine"}\n`));
  expect(passed).toEqual([line]);
});
