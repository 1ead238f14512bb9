/** Files, tools, exports, policy and the end of a session, through a bridge and its daemon. */
import { afterAll, beforeAll, expect, setDefaultTimeout, test } from "bun:test";
import { createHash } from "node:crypto";
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { toolsHash } from "../../../src/remote/protocol/hash.ts";
import { Machine } from "./machine.ts";

setDefaultTimeout(60_000);

let machine: Machine;
beforeAll(() => {
  machine = new Machine();
});
afterAll(() => machine.close());

const sha = (bytes: string | Buffer) => createHash("sha256").update(bytes).digest("hex");
const codeOf = (promise: Promise<unknown>) =>
  promise.then(
    () => "",
    (error) => error.code as string,
  );

test("files are written and read below the working folder, and nowhere else", async () => {
  const bridge = await machine.bridge().greet();
  await bridge.create(machine.project);
  const written = await bridge.peer.request("file.write", { path: "a", text: "hello" });
  expect(written).toEqual({ sha256: sha("hello"), size: 5, created: true });
  expect(readFileSync(join(machine.project, "a"), "utf8")).toBe("hello");
  expect(await bridge.peer.request("file.read", { path: "a" })).toMatchObject({ text: "hello", eof: true });
  expect(await codeOf(bridge.peer.request("file.read", { path: "../home/.ssh/id" }))).toBe("file.escape");
  expect(await codeOf(bridge.peer.request("file.write", { path: ".git/hooks/x", text: "" }))).toBe(
    "file.denied",
  );
  const piece = (await bridge.peer.request("session.export", {})) as Record<string, unknown>;
  expect(piece).toMatchObject({ eof: true, format: "tar", left: 0 });
  await bridge.peer.request("session.seal", {});
  expect(await codeOf(bridge.peer.request("file.write", { path: "a", text: "no" }))).toBe("session.sealed");
  expect(await bridge.peer.request("session.export", {})).toMatchObject({ export: piece.export });
  await bridge.close();
});

test("tools are brought before there is a session", async () => {
  const bridge = await machine.bridge().greet();
  const text = "#!/bin/sh\necho hi\n";
  const files = [{ path: "0/greet", mode: 0o755, sha256: sha(text), size: text.length }];
  const hash = toolsHash(files);
  expect(await bridge.peer.request("tools.manifest", { hash, files })).toEqual({
    missing: [sha(text)],
    begun: {},
  });
  await bridge.peer.request("blob.put", { sha256: sha(text), off: 0, data: btoa(text), last: true });
  await bridge.peer.request("tools.activate", { hash });
  await bridge.close();
  const next = machine.bridge();
  const { tools } = await next.hello.promise;
  expect(tools).toContain(hash);
  await next.close();
});

test("a session is attached no more once the host allows less than it was made with", async () => {
  const bridge = await machine.bridge().greet();
  const made = await bridge.create(machine.project);
  await bridge.close();
  const folder = join(machine.home, ".config/ollie");
  mkdirSync(folder, { recursive: true });
  writeFileSync(join(folder, "remote-policy.yaml"), "allow_code_steps: false\n", { mode: 0o600 });
  try {
    const again = await machine.bridge().greet();
    expect(await codeOf(again.attach(made))).toBe("session.policy_broader");
    await again.close();
  } finally {
    rmSync(folder, { recursive: true });
  }
  const last = await machine.bridge().greet();
  expect((await last.attach(made)).sessionId).toBe(made.sessionId);
  await last.close();
});

test("a client destroys the session that it is attached to, with all that runs in it", async () => {
  const bridge = await machine.bridge().greet();
  const { sessionId } = await bridge.create(machine.project);
  await bridge.start(["sh", "-c", "trap '' TERM; while :; do sleep 1; done"]);
  const daemon = machine.daemonOf(sessionId);
  const listed = (await bridge.peer.request("session.list", { sizes: true })) as {
    sessionId: string;
    bytes: number;
  }[];
  expect(listed.find((one) => one.sessionId === sessionId)!.bytes).toBeGreaterThan(0);
  expect(
    await codeOf(bridge.peer.request("session.destroy", { sessionId, confirm: sessionId.slice(0, 8) })),
  ).toBe("session.confirm");
  expect(await bridge.peer.request("session.destroy", { sessionId, confirm: sessionId })).toMatchObject({
    sessionId,
  });
  expect(existsSync(join(machine.sessions(), sessionId))).toBe(false);
  expect(readdirSync(join(machine.folder, "run/ollie-remote"))).not.toContain(`${sessionId}.sock`);
  expect(machine.pids()).not.toContain(daemon);
  expect(
    machine
      .pids()
      .map((pid) => readFileSync(`/proc/${pid}/cmdline`, "utf8"))
      .join(),
  ).not.toContain("trap");
  expect(readFileSync(join(machine.project, "a"), "utf8")).toBe("hello");
  await bridge.close();
});
