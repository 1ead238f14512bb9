/** doc/ARCHITECTURE.md promises that arrows between rooms run one way; here the imports are held to it. */
import { expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { join } from "node:path";

const top = join(import.meta.dir, "..");

/** From the top of the house down. A room imports only from rooms of a later line; those of one line do not know each other. */
const floors = [
  ["programs"],
  ["cli", "build"],
  ["namespace"],
  ["session"],
  ["turn"],
  ["elevate", "actors", "remote"],
  ["tools", "store"],
  ["sandbox"],
  ["backends"],
  ["config", "exec", "ninep", "ssh"],
];
/** Rooms that know less than their floor allows. */
const alone: Record<string, string[]> = { ninep: [], exec: [], ssh: [], actors: ["tools"] };
/** Files beside the rooms that every room may use; `backend.ts` holds types that rooms below the turn share. */
const common = /^(src\/(fault|ids)\.ts|package\.json|data\/|src\/backends\/backend\.ts)/;

function roomOf(path: string): string {
  if (path.startsWith("actors/")) return "actors";
  const [, room, file] = path.split("/");
  return file === undefined ? "programs" : room!;
}

function floorOf(room: string): number {
  return floors.findIndex((rooms) => rooms.includes(room));
}

const imports = [...new Bun.Glob("{src,actors}/**/*.ts").scanSync(top)].flatMap((file) =>
  [...readFileSync(join(top, file), "utf8").matchAll(/(?:from|import\()\s*"(\.[^"]+)"/g)].map((match) => ({
    file,
    target: new URL(match[1]!, `file:///${file}`).pathname.slice(1),
  })),
);

/** Without an environment Bun.spawn passes on the one that the process was started with, whatever has been taken out since. */
test("no program is started with the environment that this one was started with", () => {
  const without = [...new Bun.Glob("src/**/*.ts").scanSync(top)].flatMap((file) =>
    readFileSync(join(top, file), "utf8")
      .split(/Bun\.spawn(?:Sync)?\(/)
      .slice(1)
      .filter((call) => !/\benv\b/.test(call.split("\n").slice(0, 12).join("\n")))
      .map((call) => `${file}: ${call.split("\n")[0]}`),
  );
  expect(without).toEqual([]);
});

test("every room has its floor", () => {
  const rooms = new Set(imports.map(({ file }) => roomOf(file)));
  expect([...rooms].filter((room) => floorOf(room) < 0)).toEqual([]);
});

test("no room imports from one above it or beside it", () => {
  const wrong = imports.filter(({ file, target }) => {
    const [from, to] = [roomOf(file), roomOf(target)];
    if (from === to || common.test(target)) return false;
    return floorOf(to) <= floorOf(from) || (alone[from] !== undefined && !alone[from].includes(to));
  });
  expect(wrong.map(({ file, target }) => `${file} → ${target}`)).toEqual([]);
});
