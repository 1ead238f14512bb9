/** Which programs are sent: those that lie there, and of a signed release only what its manifest lists. */
import { afterAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import { generateKeyPairSync, type KeyObject, sign } from "node:crypto";
import { copyFileSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { delta } from "../../../src/remote/bootstrap/delta.ts";
import { Cksum, sha256 } from "../../../src/remote/bootstrap/digest.ts";
import { border, describe as described, Program, pack } from "../../../src/remote/bootstrap/program.ts";
import { type Offer, offers } from "../../../src/remote/bootstrap/programs.ts";
import { chunkBytes, frameBytes, type Manifest } from "../../../src/remote/protocol/manifest.ts";
import { programs } from "./local.ts";

setDefaultTimeout(60_000);

const folder = mkdtempSync(join(tmpdir(), "ollie-programs-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const { publicKey, privateKey } = generateKeyPairSync("ed25519");
const publisher = nameOf(publicKey);

function nameOf(key: KeyObject): string {
  return Buffer.from(key.export({ format: "jwk" }).x!, "base64url").toString("base64");
}

function framesOf(bytes: Buffer): Uint8Array[] {
  const count = Math.ceil(bytes.length / frameBytes);
  return Array.from({ length: count }, (_, index) =>
    bytes.subarray(index * frameBytes, (index + 1) * frameBytes),
  );
}

/** A release of one program, as build.ts makes it, but without the program as it is. */
async function release(key = privateKey): Promise<string> {
  const path = programs(mkdtempSync(join(folder, "release-")), { names: ["linux-x64"] });
  const file = join(path, "ollie-remote-linux-x64");
  const raw = readFileSync(file);
  const manifest: Manifest = { version: "1.2.3", programs: { "linux-x64": await described(file) } };
  for (const [codec, end] of [
    ["zstd", "zst"],
    ["gzip", "gz"],
  ] as const) {
    const frames = await Promise.all(framesOf(raw).map((frame) => pack(codec, frame)));
    const whole = Buffer.concat(frames);
    writeFileSync(`${file}.${end}`, whole);
    manifest.programs["linux-x64"]![codec] = {
      sha256: sha256(whole),
      frames: frames.map(({ length }) => length),
    };
  }
  rmSync(file);
  writeFileSync(join(path, "manifest.json"), JSON.stringify(manifest));
  writeFileSync(join(path, "manifest.json.sig"), sign(null, readFileSync(join(path, "manifest.json")), key));
  return path;
}

async function whole({ program }: Offer, codec: "zstd" | "gzip" | "none"): Promise<Buffer> {
  const { sizes, frame } = await program.load(codec);
  const frames = await Promise.all(sizes.map((_, index) => frame(index)));
  expect(frames.map(({ length }) => length)).toEqual(sizes);
  return Buffer.concat(frames);
}

describe("beside olliesrv", () => {
  test("lie those for its own machine and for others, by their names", async () => {
    const path = programs(join(folder, "dev"), { mib: 2 });
    writeFileSync(join(path, "ollie-remote-plan9-mips"), "no");
    const found = await offers({ programs: path }, undefined);
    expect(found.map(({ name, machine }) => [name, machine])).toEqual([
      ["linux-x64", "x86_64"],
      ["linux-arm64", "aarch64"],
    ]);
    const raw = readFileSync(join(path, "ollie-remote-linux-x64"));
    expect(found[0]!.program.described).toMatchObject({ sha256: sha256(raw), size: raw.length });
    expect(await whole(found[0]!, "none")).toEqual(raw);
    expect(Bun.gunzipSync(new Uint8Array(await whole(found[0]!, "gzip")).buffer).length).toBeGreaterThan(0);
  });

  test("lies none: the error says where it belongs", async () => {
    const empty = mkdtempSync(join(folder, "empty-"));
    await expect(offers({ programs: empty }, undefined)).rejects.toThrow(
      `no ollie-remote lies in ${empty}; it belongs beside olliesrv`,
    );
  });

  test("one that is exchanged after it was looked at is not sent", async () => {
    const path = programs(join(folder, "swapped"), { mib: 2 });
    const [offer] = await offers({ programs: path }, undefined);
    writeFileSync(join(path, "ollie-remote-linux-x64"), Buffer.alloc(offer!.program.described.size));
    await expect(offer!.program.load("zstd")).rejects.toMatchObject({ code: "boot.hash" });
  });
});

describe("a signed release", () => {
  test("is sent packed as it is, and can be unpacked for a host that cannot", async () => {
    const path = await release();
    const [offer] = await offers({ programs: path }, publisher);
    expect(offer).toMatchObject({ name: "linux-x64", answers: "ollie-remote 1.2.3 linux-x64" });
    expect(await whole(offer!, "zstd")).toEqual(readFileSync(join(path, "ollie-remote-linux-x64.zst")));
    expect(await whole(offer!, "gzip")).toEqual(readFileSync(join(path, "ollie-remote-linux-x64.gz")));
    const raw = await whole(offer!, "none");
    expect(sha256(raw)).toBe(offer!.program.described.sha256);
    expect(sha256(await offer!.program.chunk(5))).toBe(offer!.program.described.chunks[5]!);
    expect(await offer!.program.cksum()).toBe(new Cksum().update(raw).digest());
  });

  test.each<[string, (path: string) => void | Promise<void>, string]>([
    ["without a manifest", (path) => rmSync(join(path, "manifest.json")), "is missing"],
    ["without a signature", (path) => rmSync(join(path, "manifest.json.sig")), "no valid signature"],
    [
      "with a manifest that was changed",
      (path) => {
        const file = join(path, "manifest.json");
        writeFileSync(file, readFileSync(file, "utf8").replace("1.2.3", "1.2.4"));
      },
      "no valid signature",
    ],
    [
      "signed by somebody else",
      async (path) => {
        const other = await release(generateKeyPairSync("ed25519").privateKey);
        for (const name of ["manifest.json", "manifest.json.sig"])
          copyFileSync(join(other, name), join(path, name));
      },
      "no valid signature",
    ],
  ])("%s is refused", async (_, spoil, says) => {
    const path = await release();
    await spoil(path);
    await expect(offers({ programs: path }, publisher)).rejects.toMatchObject({
      code: "boot.signature",
      message: expect.stringContaining(says),
    });
  });

  test("a program in it that is not what the manifest says is not sent", async () => {
    const path = await release();
    const file = join(path, "ollie-remote-linux-x64.zst");
    const bytes = readFileSync(file);
    bytes[bytes.length - 1]! ^= 1;
    writeFileSync(file, bytes);
    const [offer] = await offers({ programs: path }, publisher);
    const { frame } = await offer!.program.load("zstd");
    await expect(frame(0)).rejects.toMatchObject({ code: "boot.hash" });
  });

  test("a program beside it that the manifest does not list is not offered", async () => {
    const path = programs(await release(), { names: ["linux-arm64"], mib: 1 });
    expect((await offers({ programs: path }, publisher)).map(({ name }) => name)).toEqual(["linux-x64"]);
  });

  test("a manifest that is nonsense is named as that", async () => {
    const path = mkdtempSync(join(folder, "nonsense-"));
    writeFileSync(join(path, "manifest.json"), '{"version": 1}');
    await expect(offers({ programs: path }, undefined)).rejects.toMatchObject({ code: "boot.manifest" });
  });
});

describe("a program that the user has named", () => {
  test("is for the machine that its head names, which target_triple must not contradict", async () => {
    const localRunner = process.execPath;
    const machine = process.arch === "arm64" ? "aarch64" : "x86_64";
    const [offer] = await offers({ localRunner, targetTriple: `${machine}-unknown-linux-gnu` }, publisher);
    expect(offer).toMatchObject({ machine, loader: expect.stringContaining("ld-") });
    await expect(offers({ localRunner, targetTriple: "riscv64-linux" }, publisher)).rejects.toThrow(
      `is for ${machine}, but target_triple says riscv64-linux`,
    );
  });

  test("must be a program, and be there", async () => {
    const text = join(folder, "text");
    writeFileSync(text, "hello");
    await expect(offers({ localRunner: text })).rejects.toThrow("is no program for Linux");
    await expect(offers({ localRunner: join(folder, "nothing") })).rejects.toThrow("there is no");
  });
});

describe("an upgrade", () => {
  test.each([
    ["the same", "abcdef", "abcdef", "o:0:6", ""],
    ["one changed", "abcdef", "abXdef", "o:0:2,n:0:1,o:3:3", "X"],
    ["longer", "abc", "abcX", "o:0:3,n:0:1", "X"],
    ["moved by one", "abcdef", "Xabcdef", "n:0:1,o:0:6", "X"],
    ["two apart", "abcdef", "XbcdeY", "n:0:1,o:1:4,n:1:1", "XY"],
  ])("%s", (_, old, wanted, recipe, send) => {
    const found = delta([...old], [...wanted])!;
    expect(found.recipe).toBe(recipe);
    expect(found.send.map((index) => wanted[index]).join("")).toBe(send);
  });

  test("too much is new: it is sent whole", () => {
    expect(delta([..."abcdef"], [..."UVWXef"])).toBeUndefined();
  });
});

test("what is kept of a broken upload ends with a frame", () => {
  expect(border([10, 20, 30], 9)).toEqual({ keep: 0, frame: 0 });
  expect(border([10, 20, 30], 30)).toEqual({ keep: 30, frame: 2 });
  expect(border([10, 20, 30], 59)).toEqual({ keep: 30, frame: 2 });
  expect(border([10, 20, 30], 60)).toEqual({ keep: 60, frame: 3 });
});

test("cksum is that of POSIX", () => {
  const file = join(folder, "cksum");
  for (const length of [0, 1, 255, 256, chunkBytes + 1]) {
    const bytes = Buffer.alloc(length, "ollie");
    writeFileSync(file, bytes);
    const said = Bun.spawnSync(["cksum"], { stdin: Bun.file(file), env: { PATH: process.env.PATH } });
    expect(new Cksum().update(bytes).digest()).toBe(said.stdout.toString().trim().replace(" ", "-"));
  }
});

test("a program's frames are those of its bytes", async () => {
  mkdirSync(join(folder, "frames"));
  const path = programs(join(folder, "frames"), { mib: 9, names: ["linux-x64"] });
  const raw = join(path, "ollie-remote-linux-x64");
  const program = new Program({ raw }, await described(raw));
  const { sizes } = await program.load("none");
  expect(sizes.length).toBe(3);
  expect(sizes.reduce((sum, size) => sum + size, 0)).toBe(readFileSync(raw).length);
});
