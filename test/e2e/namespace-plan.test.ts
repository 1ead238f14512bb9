/** `plan`: a text that is written whole, and by several. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { OTRUNC, OWRITE } from "../../src/ninep/file.ts";
import { refusal, send, World } from "./namespace-world.ts";

let world: World;
beforeAll(async () => {
  world = await World.start();
});
afterAll(() => world.stop());

describe("the plan", () => {
  const plan = async (name: string) => world.read(`session/${name}/plan`);

  test("is replaced by >, added to by >>, to the byte", async () => {
    const { name, path } = await world.session();
    const put = (text: string, ...options: string[]) =>
      world.p9(["write", ...options, `${path}/plan`], { stdin: text });
    await put("first\n\n");
    expect(await plan(name)).toBe("first\n\n");
    await put("no newline, \0 and \r\n at its end");
    expect(await plan(name)).toBe("no newline, \0 and \r\n at its end");
    await put(" more\n", "-a");
    expect(await plan(name)).toBe("no newline, \0 and \r\n at its end more\n");
    await put("");
    expect(await plan(name)).toBe("");
  });

  test("keeps what any number of writers add at once", async () => {
    const { name, path } = await world.session();
    const items = Array.from({ length: 12 }, (_, i) => `- ${i}\n`);
    await Promise.all(items.map((stdin) => world.p9(["write", "-a", `${path}/plan`], { stdin })));
    expect((await plan(name)).split("\n").sort()).toEqual(items.join("").split("\n").sort());
  });

  test("is seen whole: as it was before, or as it is when the file was closed", async () => {
    const { name, path } = await world.session();
    await world.write(`${path}/plan`, "before\n");
    const fid = await world.client.openFile(`${path}/plan`, OWRITE | OTRUNC);
    await send(fid, "after");
    expect(await plan(name)).toBe("before\n");
    await send(fid, "wards\n", 5);
    await fid.clunk();
    expect(await plan(name)).toBe("afterwards\n");
  });

  test("is changed in place, and cut", async () => {
    const { name, path } = await world.session();
    await world.write(`${path}/plan`, "one two three\n");
    const fid = await world.client.openFile(`${path}/plan`, OWRITE);
    await send(fid, "TWO", 4);
    await fid.clunk();
    expect(await plan(name)).toBe("one TWO three\n");
    await world.client.wstat(`${path}/plan`, { length: 7 });
    expect(await plan(name)).toBe("one TWO");
    await world.client.wstat(`${path}/plan`, { length: 0 });
    expect(await plan(name)).toBe("");
  });

  test("refuses a huge offset or length instead of making room for it", async () => {
    const { name, path } = await world.session();
    await world.write(`${path}/plan`, "short\n");
    for (const offset of [7, 2 ** 31, 2 ** 40, 2n ** 62n]) {
      const fid = await world.client.openFile(`${path}/plan`, OWRITE);
      expect(await refusal(fid.write(offset, Buffer.from("x")))).toStartWith("Invalid argument: ");
      await fid.clunk();
    }
    expect(await refusal(world.client.wstat(`${path}/plan`, { length: 2 ** 40 }))).toStartWith(
      "Invalid argument: ",
    );
    expect(await plan(name)).toBe("short\n");
  });
});
