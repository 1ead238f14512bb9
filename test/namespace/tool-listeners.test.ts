import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { existsSync, readdirSync, statSync } from "node:fs";
import { dirname } from "node:path";
import { ToolListeners } from "../../src/namespace/tool-listeners.ts";
import type { Client } from "../../src/ninep/client.ts";
import { dial } from "../../src/ninep/dial.ts";
import { agentPath, denied, missing, refusal, type Served, serve } from "./serve.ts";

let served: Served;
/** A tool of the agent `default` of session `a`. */
let tool: Client;
beforeEach(async () => {
  served = await serve();
  tool = await served.tool(served.agent);
});
afterEach(async () => {
  await served[Symbol.asyncDispose]();
});

describe("the address of an agent's tools", () => {
  test("is one for each agent, for the owner alone, and stays through renames", async () => {
    const other = await served.session.createAgent(new Map([["name", "other"]]));
    const [one, two] = [served.tools.unix(served.agent), served.tools.unix(other)];
    expect(one).not.toBe(two);
    const path = one.slice("unix!".length);
    expect(statSync(path).mode & 0o777).toBe(0o600);
    expect(statSync(dirname(path)).mode & 0o777).toBe(0o700);
    await served.client.rename("session/a", "z");
    await served.client.rename("session/z/agent/default", "y");
    expect(served.tools.unix(served.agent)).toBe(one);
    await tool.writeFile("session/z/agent/y/tools", "file_read\n");
    await denied(tool.writeFile("session/z/agent/other/tools", "file_read\n"));
  });

  test("is gone when the server ends, with its folder", async () => {
    const folder = dirname(served.tools.unix(served.agent).slice("unix!".length));
    served.tools.close();
    expect(existsSync(folder)).toBe(false);
  });

  test("is swept up after a server that was killed", async () => {
    const path = served.tools.unix(served.agent).slice("unix!".length);
    const next = new ToolListeners(`${served.dir}/run/9p`, () => served.server);
    const mine = next.unix(served.agent).slice("unix!".length);
    next.sweep();
    expect(readdirSync(dirname(path)).map((name) => `${dirname(path)}/${name}`)).toEqual([mine]);
    next.close();
  });

  test("is elsewhere, and as private, where the owner's own leaves no room for it", async () => {
    const far = new ToolListeners(
      `${served.dir}/${"s".repeat(106 - served.dir.length)}`,
      () => served.server,
    );
    const address = far.unix(served.agent);
    const folder = dirname(address.slice("unix!".length));
    expect(statSync(folder).mode & 0o777).toBe(0o700);
    const client = await dial(address);
    expect((await client.readDir("session")).map(({ name }) => name)).toEqual(["a", "idx", "new"]);
    client.close();
    far.close();
    expect(existsSync(folder)).toBe(false);
  });

  test("over the loopback opens with the token of that agent alone", async () => {
    const other = await served.session.createAgent(new Map([["name", "other"]]));
    const { addr, token } = served.tools.tcp(served.agent);
    expect(served.tools.tcp(served.agent)).toMatchObject({ addr, token });
    await denied(dial(addr));
    await denied(dial(addr, { aname: `token:${served.tools.tcp(other).token}` }));
    const client = await dial(addr, { aname: `token:${token}` });
    await client.writeFile(`${agentPath}/tools`, "file_read\n");
    await denied(client.writeFile("session/a/agent/other/tools", "file_read\n"));
    await served.agent.remove();
    await missing(client.readText("version"));
    client.close();
    expect(await refusal(dial(addr, { aname: `token:${token}` }))).toContain("no server answers");
  });
});
