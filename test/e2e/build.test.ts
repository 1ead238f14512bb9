/** What `build.ts` makes: the same everywhere, of its own folder only, and for other machines. */
import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import { createHash, generateKeyPairSync, type KeyObject } from "node:crypto";
import {
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { offers } from "../../src/remote/bootstrap/programs.ts";
import { lacks } from "../needs.ts";
import { build, dist, Home, run, startServer, succeeded, type TestServer } from "./harness.ts";

setDefaultTimeout(300_000);

const top = join(import.meta.dir, "../..");
const environment = { PATH: process.env.PATH!, HOME: process.env.HOME ?? "/" };
const folder = mkdtempSync(join(tmpdir(), "ollie-build-"));
beforeAll(build);
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const programs = ["olliesrv", "ollie-9p", "ollie-remote"];
/** What goes to hosts, packed. The C library for those that lack one cannot be made on a machine without glibc. */
const packsOf = (path: string, target: string) =>
  [`ollie-remote-${target}.zst`, `ollie-remote-${target}.libc`, "manifest.json"].filter(
    (name) => !name.endsWith(".libc") || existsSync(join(path, name)),
  );

const sha256 = (path: string) => createHash("sha256").update(readFileSync(path)).digest("hex");

/** A copy of what the build reads, without git. */
function checkout(path: string): string {
  mkdirSync(path, { recursive: true });
  for (const name of [
    "build.ts",
    "package.json",
    "package-lock.json",
    "tsconfig.json",
    "src",
    "actors",
    "data",
  ]) {
    cpSync(join(top, name), join(path, name), { recursive: true });
  }
  // Only what is bundled; the tools of the build are hundreds of megabytes.
  const { packages } = JSON.parse(readFileSync(join(top, "package-lock.json"), "utf8")) as {
    packages: Record<string, { dev?: boolean }>;
  };
  for (const [name, { dev }] of Object.entries(packages)) {
    if (name !== "" && !dev && existsSync(join(top, name)))
      cpSync(join(top, name), join(path, name), { recursive: true });
  }
  return path;
}

const buildIn = (path: string, ...args: string[]) =>
  run([process.execPath, "build.ts", ...args], environment, { cwd: path });

describe("the build", () => {
  test("gives the same bytes in any folder, with their sums, and names no folder in them", async () => {
    const one = checkout(join(folder, "one"));
    const two = join(folder, "a/much/longer/path/two");
    cpSync(one, two, { recursive: true });
    for (const path of [one, two]) succeeded(await buildIn(path));
    const sums = readFileSync(join(one, "dist/SHA256SUMS"), "utf8");
    expect(readFileSync(join(two, "dist/SHA256SUMS"), "utf8")).toBe(sums);
    const names = [...programs, "o", ...packsOf(join(one, "dist"), `linux-${process.arch}`)];
    expect(sums).toBe(names.map((name) => `${sha256(join(one, "dist", name))}  ${name}\n`).join(""));
    for (const name of programs) {
      const program = readFileSync(join(one, "dist", name));
      expect(program.includes(folder)).toBe(false);
      expect(program.includes(top)).toBe(false);
      // Compiled parts of packages would be for one kind of machine only.
      expect(/\/\$bunfs\/[^\0"']*\.node\b/.test(program.toString("latin1"))).toBe(false);
    }
    expect(readdirSync(join(one, "dist")).sort()).toEqual([".inputs", "SHA256SUMS", ...names].sort());
    expect((await run([join(one, "dist/olliesrv"), "--version"], environment)).stdout).toMatch(
      /^olliesrv \S+ \(unknown\)\n$/,
    );
  });

  test("does nothing while nothing has changed, and something once it has", async () => {
    const path = join(folder, "one");
    const made = () => statSync(join(path, "dist/olliesrv")).ino;
    const before = made();
    succeeded(await buildIn(path));
    expect(made()).toBe(before);
    writeFileSync(join(path, "data/prompts/another.md"), "Another.\n");
    succeeded(await buildIn(path));
    expect(made()).not.toBe(before);
  });

  test("a build that fails leaves the last programs and says where the mistake is", async () => {
    const path = join(folder, "one");
    const before = sha256(join(path, "dist/olliesrv"));
    const names = readdirSync(join(path, "dist")).sort();
    // Of a build that was killed: no process has that number.
    mkdirSync(join(path, "dist/.build.99999999"));
    writeFileSync(join(path, "src/olliesrv.ts"), 'import "./nowhere.ts";\n');
    const { status, stderr } = await buildIn(path);
    expect(status).toBe(1);
    expect(stderr).toContain("nowhere.ts");
    expect(sha256(join(path, "dist/olliesrv"))).toBe(before);
    expect(readdirSync(join(path, "dist")).sort()).toEqual(names);
  });

  test("an unknown target is named, with those there are", async () => {
    const { status, stderr } = await buildIn(top, "--target", "plan9-mips");
    expect(stderr).toBe(
      "build: unknown target plan9-mips: there are linux-x64, linux-arm64, linux-x64-musl\n",
    );
    expect(status).toBe(1);
  });

  test("the programs need no library that an old glibc has not", () => {
    for (const name of programs) {
      const versions = new Set(
        readFileSync(join(dist, name))
          .toString("latin1")
          .match(/GLIBC_2\.\d+/g),
      );
      const newest = Math.max(...[...versions].map((version) => Number(version.split(".")[1])));
      expect(newest).toBeLessThanOrEqual(17);
    }
  });
});

describe("in a folder that is up to no good", () => {
  let home: Home;
  let server: TestServer | undefined;
  beforeAll(() => {
    home = new Home();
    writeFileSync(join(home.work, ".env"), "OLLIE_ADDR=unix!/hostile\nOLLIE_MODEL=hostile\n");
    writeFileSync(join(home.work, "bunfig.toml"), 'preload = ["./preload.ts"]\n');
    writeFileSync(
      join(home.work, "preload.ts"),
      'require("node:fs").writeFileSync("owned", "");\nprocess.exit(99);\n',
    );
    writeFileSync(join(home.work, "package.json"), '{"type":"nonsense"');
    writeFileSync(join(home.work, "tsconfig.json"), '{"compilerOptions":{"paths":{"*":["./preload.ts"]}}}');
  });
  afterAll(async () => {
    await server?.stop();
    home.remove();
  });

  test("nothing of it is loaded by the programs, nor by a tool that runs there", async () => {
    server = await startServer();
    for (const name of [".env", "bunfig.toml", "preload.ts", "package.json", "tsconfig.json"]) {
      cpSync(join(home.work, name), join(server.home.work, name));
    }
    await server.restart();
    expect((await server.p9("read", "version")).stdout).toContain("protocol: 9P2000");
    expect((await server.home.olliesrv("--version")).status).toBe(0);
    const session = await server.create();
    expect(await server.read(`session/${session}/agent/default/cfg`)).not.toContain("hostile");
    expect(await server.ask(session, "$ echo tools run here")).toContain("tools run here");
    const glob = join(server.home.config, "tools/file_glob.ts");
    const tool = await server.home.run([join(dist, "olliesrv"), "ollie-run", glob], {
      stdin: JSON.stringify({ pattern: "*" }),
      env: { OLLIE_CWD: server.home.work, OLLIE_TMP: server.home.folder },
    });
    expect(tool.stdout).toContain("preload.ts");
    expect(existsSync(join(server.home.work, "owned"))).toBe(false);
  });
});

const emulator = Bun.which("qemu-aarch64-static");
/** Debian's libc6-arm64-cross. */
const libraries = "/usr/aarch64-linux-gnu";
const emulated = emulator !== null && existsSync(libraries);

/** The program that an ELF64 file wants to be loaded by: its PT_INTERP. */
function loader(file: Buffer): string | undefined {
  const table = Number(file.readBigUInt64LE(32)); // e_phoff
  const size = file.readUInt16LE(54); // e_phentsize
  for (let at = table; at < table + size * file.readUInt16LE(56); at += size) {
    if (file.readUInt32LE(at) !== 3) continue;
    const start = Number(file.readBigUInt64LE(at + 8)); // p_offset
    return file.toString("latin1", start, file.indexOf(0, start));
  }
  return undefined;
}

describe("for other machines", () => {
  const out = join(folder, "targets");
  beforeAll(async () => {
    // Beyond the limit of `run`: the first time npm fetches a runtime for each.
    const built = Bun.spawn([process.execPath, "build.ts", "--all", "--out", out], {
      cwd: top,
      env: environment,
      stderr: "pipe",
    });
    expect([await built.exited, await new Response(built.stderr).text()]).toEqual([0, ""]);
  });

  // The machines are e_machine of the ELF header: EM_X86_64 and EM_AARCH64.
  test.each([
    ["linux-x64", 62, "/lib64/ld-linux-x86-64.so.2"],
    ["linux-arm64", 183, "/lib/ld-linux-aarch64.so.1"],
    ["linux-x64-musl", 62, "/lib/ld-musl-x86_64.so.1"],
  ])("--all makes the programs for %s", (target, machine, interpreter) => {
    const names = [...programs, "o", ...packsOf(join(out, target), target)];
    const sums = names.map((name) => `${sha256(join(out, target, name))}  ${name}\n`);
    expect(readFileSync(join(out, target, "SHA256SUMS"), "utf8")).toBe(sums.join(""));
    for (const name of programs) {
      const file = readFileSync(join(out, target, name));
      expect(file.toString("latin1", 0, 4)).toBe("\x7fELF");
      expect([file.readUInt16LE(18), loader(file)]).toEqual([machine, interpreter]);
    }
  });

  test.skipIf(lacks("qemu-user and a C library for arm64", emulated))(
    "the arm64 programs run under qemu-user, and serve each other",
    async () => {
      const program = (name: string) => join(out, "linux-arm64", name);
      const arm = (name: string) => [emulator!, "-L", libraries, program(name)];
      const home = new Home();
      const server = Bun.spawn([...arm("olliesrv"), "fgstart"], {
        env: home.env,
        cwd: home.work,
        stdout: "pipe",
        stderr: "ignore",
      });
      try {
        const said = (await server.stdout.getReader().read()).value;
        expect(Buffer.from(said!).toString()).toContain(`listens on ${home.address}`);
        expect((await run([...arm("ollie-9p"), "read", "version"], home.env)).stdout).toContain(
          "protocol: 9P2000",
        );
        expect(existsSync(join(home.config, "agents/default.json"))).toBe(true);
        server.kill("SIGTERM");
        expect(await server.exited).toBe(0);
      } finally {
        server.kill("SIGKILL");
        home.remove();
      }
    },
  );
});

/** The public key's name, as it is built into olliesrv. */
const nameOf = (key: KeyObject) =>
  Buffer.from(key.export({ format: "jwk" }).x!, "base64url").toString("base64");

describe("for other hosts", () => {
  const target = `linux-${process.arch}`;

  test("--remote puts the program for another kind of host beside olliesrv, and later builds make it anew", async () => {
    const path = checkout(join(folder, "remote"));
    const name = "ollie-remote-linux-x64-musl";
    const program = join(path, "dist", name);
    mkdirSync(join(path, "node_modules/.cache"), { recursive: true });
    cpSync(join(top, "node_modules/.cache/runtimes"), join(path, "node_modules/.cache/runtimes"), {
      recursive: true,
    });
    succeeded(await buildIn(path, "--remote", "linux-x64-musl"));
    expect(loader(readFileSync(program))).toBe("/lib/ld-musl-x86_64.so.1");
    expect(readFileSync(join(path, "dist/SHA256SUMS"), "utf8")).toContain(`${sha256(program)}  ${name}\n`);
    const before = sha256(program);
    writeFileSync(join(path, "data/sandbox/another.yaml"), "ro: [/opt]\n");
    succeeded(await buildIn(path));
    expect(sha256(program)).not.toBe(before);
  });

  test.skipIf(lacks("openssl", Bun.which("openssl") !== null))(
    "--release packs them with a manifest, which openssl finds signed; olliesrv sends them by it",
    async () => {
      const { publicKey, privateKey } = generateKeyPairSync("ed25519");
      const key = join(folder, "key.pem");
      writeFileSync(key, privateKey.export({ type: "pkcs8", format: "pem" }));
      writeFileSync(`${key}.pub`, publicKey.export({ type: "spki", format: "pem" }));
      const out = join(folder, "release");
      const wanted = ["--release", "--key", key, "--level", "1", "--target", target, "--out", out];
      succeeded(await buildIn(top, ...wanted));
      const path = join(out, target);
      const verify =
        "openssl pkeyutl -verify -pubin -rawin -in manifest.json -sigfile manifest.json.sig -inkey";
      succeeded(await run([...verify.split(" "), `${key}.pub`], environment, { cwd: path }));

      const name = nameOf(publicKey);
      expect(readFileSync(join(path, "olliesrv")).includes(name)).toBe(true);
      const [offer] = await offers({ programs: path }, name);
      expect(offer).toMatchObject({ name: target, pack: { files: expect.anything() } });
      const digest = sha256(join(path, "ollie-remote"));
      expect(offer!.program.described.sha256).toBe(digest);
      const unpacked = Bun.spawnSync(["gzip", "-dc", `ollie-remote-${target}.gz`], {
        cwd: path,
        env: environment,
      });
      expect(createHash("sha256").update(unpacked.stdout).digest("hex")).toBe(digest);
      // What is sent is the same whoever signs it, and whether it is a release.
      succeeded(await buildIn(top, "--target", target, "--out", join(folder, "plain")));
      expect(sha256(join(folder, "plain", target, "ollie-remote"))).toBe(digest);
    },
  );

  test("a key that is none is named", async () => {
    const key = join(folder, "no-key.pem");
    writeFileSync(key, "nonsense");
    const { status, stderr } = await buildIn(
      top,
      "--release",
      "--key",
      key,
      "--out",
      join(folder, "nothing"),
    );
    expect([status, stderr]).toEqual([1, expect.stringContaining("no-key.pem holds no private key in PEM")]);
    expect(existsSync(join(folder, "nothing"))).toBe(false);
  });
});
