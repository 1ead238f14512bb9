import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { mkdirSync, mkdtempSync, realpathSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import fc from "fast-check";
import { Grants } from "../../src/sandbox/grants.ts";
import { within } from "../../src/sandbox/paths.ts";
import { type Place, R, W, X } from "../../src/sandbox/places.ts";

let top: string;
const names = ["a", "b", "c"];
const tree: string[] = [];

/** Folders a, b and c in one another, three deep. */
function grow(folder: string, depth: number): void {
  mkdirSync(folder, { recursive: true });
  tree.push(folder);
  if (depth > 0) for (const name of names) grow(join(folder, name), depth - 1);
}

beforeAll(() => {
  top = realpathSync(mkdtempSync(join(tmpdir(), "ollie-grants-")));
  grow(top, 3);
});
afterAll(() => rmSync(top, { recursive: true, force: true }));

const somewhere = fc
  .array(fc.constantFrom(...names), { minLength: 1, maxLength: 3 })
  .map((parts) => parts.join("/"));
const places = fc.array(
  fc.record({ path: somewhere, without: fc.constantFrom(W, R | W | X), firm: fc.boolean() }),
  { maxLength: 4 },
);

describe("a grant on a folder", () => {
  const sets = fc.tuple(places, fc.constantFrom(R, R | X, R | W, R | W | X));

  test("never reaches what is protected in it", () => {
    fc.assert(
      fc.property(sets, ([drawn, rights]) => {
        const all = drawn.map((place): Place => ({ ...place, path: join(top, place.path) }));
        const grants = new Grants({ all, open: [] }, "/nowhere");
        grants.grant(top, rights);
        for (const path of tree)
          for (const place of all)
            if (within(path, place.path)) expect(grants.at(path) & place.without).toBe(0);
      }),
    );
  });

  test("reaches all that neither is protected nor holds something that is", () => {
    fc.assert(
      fc.property(sets, ([drawn, rights]) => {
        const all = drawn.map((place): Place => ({ ...place, path: join(top, place.path) }));
        const grants = new Grants({ all, open: [] }, "/nowhere");
        grants.grant(top, rights);
        for (const path of tree)
          if (!all.some((place) => within(path, place.path) || within(place.path, path)))
            expect(grants.at(path)).toBe(rights);
      }),
    );
  });

  test("is written down without what is said twice", () => {
    fc.assert(
      fc.property(fc.array(fc.tuple(somewhere, fc.constantFrom(R, R | X, R | W, R | W | X))), (drawn) => {
        const grants = new Grants({ all: [], open: [] }, "/nowhere");
        for (const [path, rights] of drawn) grants.grant(join(top, path), rights);
        const lists = grants.filesystem();
        const again = new Grants({ all: [], open: [] }, "/nowhere");
        const bits = { ro: R, rox: R | X, rw: R | W, rwx: R | W | X };
        for (const [key, right] of Object.entries(bits))
          for (const path of lists[key as keyof typeof bits]) again.grant(path, right);
        for (const path of tree) expect(again.at(path)).toBe(grants.at(path));
        const written = Object.values(lists).flat();
        expect(new Set(written).size).toBe(written.length);
      }),
    );
  });
});
