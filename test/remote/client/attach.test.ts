/** What commands of the user's and limits of a profile do to a session on a host. */
import { afterEach, beforeEach, expect, test } from "bun:test";
import { chmodSync, mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { exportSession } from "../../../src/cli/server/remote/export.ts";
import { Bridge } from "../../../src/remote/client/bridge.ts";
import { RemoteLink } from "../../../src/remote/client/link.ts";
import { LocalTools } from "../../../src/remote/client/tools/local.ts";
import { loadRemotes } from "../../../src/remote/policy/remotes.ts";
import { toolsList } from "../../../src/remote/protocol/tools.ts";
import { FakeHost } from "./host.ts";
import { TestSession } from "./session.ts";

let host: FakeHost;
let tools: LocalTools;
beforeEach(() => {
  host = new FakeHost();
  const folder = join(host.folder, "tools");
  mkdirSync(folder);
  writeFileSync(join(folder, "hello.meta"), '{"description": "says hello"}');
  writeFileSync(join(folder, "hello"), "#!/bin/sh\necho hello\n");
  chmodSync(join(folder, "hello"), 0o755);
  tools = new LocalTools([folder]);
});
afterEach(() => host.remove());

test("an export leaves the session the tools that it has", async () => {
  const session = new TestSession(host, tools);
  await session.ready();
  session.close();
  const signal = AbortSignal.timeout(30_000);
  const lease = await host.connections.lease(
    loadRemotes("/nonexistent").profileFor("alice@h1").ssh,
    undefined,
    signal,
  );
  const booted = await host.boot(lease.connection, { signal, onProgress() {} } as never);
  const bridge = new Bridge(booted, { handlers: {}, maxFrame: 1 << 20, limit: 30_000, onLost() {} });
  try {
    await bridge.greet("test", signal);
    const file = join(host.folder, "export.tar");
    await exportSession({ peer: bridge.peer } as never, session.locator!, { format: "tar", file });
    const there = await bridge.peer.request("tools.list", {}, { schema: toolsList });
    expect(there.tools.map(({ name }) => name)).toEqual(["hello"]);
  } finally {
    bridge.close();
    lease.release();
  }
}, 60_000);

test("an upload that takes longer than the profile allows says so", async () => {
  const profile = loadRemotes("/nonexistent").profileFor("alice@h1");
  const link = new RemoteLink(
    {
      target: "alice@h1",
      profile: { ...profile, timeouts: { ...profile.timeouts, upload: 1 } },
      client: "test",
      connections: host.connections,
      boot: (_, { signal }) =>
        new Promise((_, reject) => signal.addEventListener("abort", () => reject(signal.reason))),
      workspace: { kind: "inplace", path: host.project },
      settings: () => ({ env: {}, sandboxes: {}, approved: [] }),
      tools,
    },
    { progress() {}, lost() {}, keep() {}, note() {}, toolsChanged() {}, toolsOutdated() {}, asks() {} },
  );
  const { signal } = new AbortController();
  await link.connect(signal);
  await expect(link.bootstrap(signal)).rejects.toMatchObject({
    code: "boot.stalled",
    message: expect.stringContaining("upload_secs"),
  });
  link.stands("closed");
});
