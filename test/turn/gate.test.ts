import { describe, expect, test } from "bun:test";
import { Gate } from "../../src/turn/gate.ts";

/** Who is inside, by name; `exclusive` callers have a name that begins with `x`. */
function visitors() {
  const gate = new Gate();
  const inside: string[] = [];
  const leavers = new Map<string, () => void>();
  return {
    inside,
    async enter(...names: string[]) {
      for (const name of names)
        void gate.enter(name.startsWith("x")).then((leave) => {
          inside.push(name);
          leavers.set(name, () => {
            inside.splice(inside.indexOf(name), 1);
            leave();
          });
        });
      await Bun.sleep(0);
    },
    async leave(name: string) {
      leavers.get(name)!();
      await Bun.sleep(0);
    },
  };
}

describe("the gate of a session", () => {
  test("lets ordinary calls in together", async () => {
    const { enter, inside } = visitors();
    await enter("a", "b", "c");
    expect(inside).toEqual(["a", "b", "c"]);
  });

  test("lets an exclusive call in alone, when all before it have left", async () => {
    const { enter, leave, inside } = visitors();
    await enter("a", "b", "x", "c");
    expect(inside).toEqual(["a", "b"]);
    await leave("a");
    expect(inside).toEqual(["b"]);
    await leave("b");
    expect(inside).toEqual(["x"]);
    await leave("x");
    expect(inside).toEqual(["c"]);
  });

  test("keeps the order of those who wait: nobody overtakes an exclusive call", async () => {
    const { enter, leave, inside } = visitors();
    await enter("x1", "x2", "a", "b");
    expect(inside).toEqual(["x1"]);
    await leave("x1");
    expect(inside).toEqual(["x2"]);
    await leave("x2");
    expect(inside).toEqual(["a", "b"]);
  });

  test("counts each leaving once", async () => {
    const gate = new Gate();
    const leave = await gate.enter(false);
    const other = await gate.enter(false);
    leave();
    leave();
    let alone = false;
    void gate.enter(true).then(() => {
      alone = true;
    });
    await Bun.sleep(0);
    expect(alone).toBe(false);
    other();
    await Bun.sleep(0);
    expect(alone).toBe(true);
  });
});
