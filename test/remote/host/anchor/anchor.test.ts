/** The trust anchor of a host, asked by the client's own end of it. */
import { afterEach, beforeEach, expect, setDefaultTimeout, test } from "bun:test";
import { createHash, generateKeyPairSync, sign } from "node:crypto";
import {
  appendFileSync,
  chmodSync,
  copyFileSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  statSync,
  symlinkSync,
  unlinkSync,
  utimesSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { Host, hello, programs } from "../../bootstrap/local.ts";

setDefaultTimeout(60_000);

const main = join(import.meta.dir, "main.ts");
let host: Host;
let folder: string;
let small: string;
let digest: string;
let anchor: string;

beforeEach(() => {
  host = new Host({ env: { BUN_INSTALL_CACHE_DIR: "/nonexistent" } });
  folder = host.folder;
  small = programs(join(folder, "programs"), { mib: 2 });
  digest = createHash("sha256")
    .update(readFileSync(join(small, `ollie-remote-linux-${process.arch}`)))
    .digest("hex");
  anchor = join(folder, "anchor");
  writeFileSync(anchor, `#!/bin/sh\nexec ${process.execPath} ${main} "$@"\n`, { mode: 0o755 });
});
afterEach(() => host.remove());

const boot = () => host.boot({ programs: small, bootstrapCommand: anchor });
const file = () => join(host.bin, `ollie-remote-${digest}`);

/** Calls it directly: what it says, without what it says it behind. */
function say(
  words: string[],
  { stdin = "", env = {} }: { stdin?: string | Buffer; env?: Record<string, string> } = {},
) {
  const run = Bun.spawnSync([process.execPath, main, ...words], {
    stdin: Buffer.from(stdin),
    env: { PATH: "/usr/bin:/bin", HOME: host.home, ...env },
  });
  return run.stdout
    .toString()
    .replace(/^\nOLLIE1 \S+ /, "")
    .trimEnd();
}
const nonce = "0123456789abcdef";
const check = () => say(["check", digest, nonce]);

function policy(text: string): void {
  mkdirSync(join(host.home, ".config/ollie"), { recursive: true });
  writeFileSync(join(host.home, ".config/ollie/remote-policy.yaml"), text, { mode: 0o600 });
}

test("it takes a program in, launches it, and has it at the next time", async () => {
  const first = await boot();
  expect([first.hit, first.digest]).toEqual([false, digest]);
  expect(await hello(first)).toBe("hello 1");
  expect([statSync(file()).mode & 0o777, statSync(host.bin).mode & 0o777]).toEqual([0o700, 0o700]);
  const second = await boot();
  expect([second.hit, second.uploaded]).toEqual([true, 0]);
  expect(await hello(second)).toBe("hello 1");
  expect(host.installed()).toEqual([`ollie-remote-${digest}`]);
});

/** Puts the program where it belongs, as an earlier install would have. */
function put(): void {
  say(
    [
      "install",
      digest,
      nonce,
      "none",
      `${statSync(join(small, `ollie-remote-linux-${process.arch}`)).size}`,
      "0",
    ],
    {
      stdin: readFileSync(join(small, `ollie-remote-linux-${process.arch}`)),
    },
  );
  expect(check()).toBe(`hit ${digest}`);
}

test.each([
  ["changed", () => appendFileSync(file(), "x")],
  [
    "changed, its time put back",
    () => {
      const { mtime, atime } = statSync(file());
      const bytes = readFileSync(file());
      bytes[bytes.length - 1]! ^= 1;
      writeFileSync(file(), bytes);
      utimesSync(file(), atime, mtime);
    },
  ],
  ["empty", () => writeFileSync(file(), "")],
  [
    "a link",
    () => {
      copyFileSync(file(), join(folder, "copy"));
      unlinkSync(file());
      symlinkSync(join(folder, "copy"), file());
    },
  ],
  ["writable by others", () => chmodSync(file(), 0o722)],
  [
    "a folder",
    () => {
      unlinkSync(file());
      mkdirSync(file());
    },
  ],
])("a program that is %s is neither found nor launched", (_, damage) => {
  put();
  damage();
  expect(check()).toStartWith("miss arch=");
  expect(say(["launch", digest, nonce])).toStartWith("fail hash ");
});

test("an operator installs a program by hand", () => {
  const bytes = readFileSync(join(small, `ollie-remote-linux-${process.arch}`));
  expect(say(["install", digest], { stdin: bytes })).toBe(`installed ${digest}`);
  expect(say(["check", digest])).toBe(`hit ${digest}`);
});

test("what is damaged, short, too long or no program is not installed, and nothing is left of it", () => {
  const bytes = readFileSync(join(small, `ollie-remote-linux-${process.arch}`));
  const install = (stdin: Buffer, codec = "none", length = stdin.length, hash = digest) =>
    say(["install", hash, nonce, codec, `${length}`, "0"], { stdin });
  const other = Buffer.from(bytes);
  other[1000]! ^= 1;
  expect(install(other)).toStartWith("fail hash ");
  expect(install(bytes.subarray(0, 1000), "none", bytes.length)).toStartWith("fail short ");
  expect(install(bytes, "gzip")).toStartWith("fail hash the program cannot be unpacked");
  expect(install(bytes, "zstd")).toStartWith("fail hash the program cannot be unpacked");
  const bare = Buffer.from("#!/bin/sh\necho Bun is a fast JavaScript runtime\n");
  expect(install(bare, "none", bare.length, createHash("sha256").update(bare).digest("hex"))).toStartWith(
    "fail selftest ",
  );
  expect(readdirSync(host.bin)).toEqual([]);
});

test("old programs go, but not the one before and none that runs", () => {
  const install = (text: string) => {
    const bytes = Buffer.from(`#!/bin/sh\necho ollie-remote 1 x\n# ${text}\n`);
    const hash = createHash("sha256").update(bytes).digest("hex");
    expect(say(["install", hash, nonce, "none", `${bytes.length}`, "0"], { stdin: bytes })).toBe(
      `installed ${hash}`,
    );
    return join(host.bin, `ollie-remote-${hash}`);
  };
  const files = ["1", "2", "3"].map((name, index) => {
    const path = install(name);
    utimesSync(path, 1000 + index, 1000 + index);
    return path;
  });
  expect(files.map((path) => existsSync(path))).toEqual([true, true, true].map((_, index) => index > 0));
  const running = Bun.spawn(["sh", "-c", "read line", files[1]!], {
    stdin: "pipe",
    env: { PATH: "/usr/bin:/bin" },
  });
  try {
    install("4");
    install("5");
    expect(existsSync(files[1]!)).toBe(true);
    expect(existsSync(files[2]!)).toBe(false);
  } finally {
    running.kill("SIGKILL");
  }
});

test("with publisher_keys only what is signed is installed and launched", () => {
  put();
  const { publicKey, privateKey } = generateKeyPairSync("ed25519");
  const key = Buffer.from(publicKey.export({ format: "jwk" }).x!, "base64url").toString("base64");
  policy(`publisher_keys: ["${key}"]\n`);
  expect(check()).toStartWith("miss ");
  expect(say(["launch", digest, nonce])).toStartWith("fail hash ");
  const bytes = readFileSync(join(small, `ollie-remote-linux-${process.arch}`));
  const install = (proof: Buffer) =>
    say(["install", digest, nonce, "none", `${bytes.length}`, `${proof.length}`], {
      stdin: Buffer.concat([proof, bytes]),
    });
  const manifest = (sha256: string) =>
    Buffer.from(
      JSON.stringify({ version: "1", programs: { "linux-x64": { sha256, size: bytes.length, chunks: [] } } }),
    );
  const signed = (text: Buffer) => Buffer.concat([sign(null, text, privateKey), text]);
  const stranger = generateKeyPairSync("ed25519").privateKey;
  expect(install(Buffer.alloc(0))).toStartWith("fail signature ");
  expect(install(signed(manifest("0".repeat(64))))).toStartWith("fail signature ");
  expect(install(Buffer.concat([sign(null, manifest(digest), stranger), manifest(digest)]))).toStartWith(
    "fail signature ",
  );
  expect(install(signed(manifest(digest)))).toBe(`installed ${digest}`);
  expect(check()).toBe(`hit ${digest}`);
});

test("a policy that is broken stops it", () => {
  policy("allowed_program: []\n");
  expect(check()).toStartWith("fail policy_file ");
});

test("a forced command takes the client's words apart, and gives nothing of them to a shell", () => {
  put();
  const forced = (command: string, ...fixed: string[]) =>
    say(["forced", ...fixed], { env: { SSH_ORIGINAL_COMMAND: command, SSH_CONNECTION: "x" } });
  expect(forced(`/anything check ${digest} ${nonce}`)).toBe(`hit ${digest}`);
  expect(forced(`/anything check ${digest} ${nonce}; touch ${folder}/pwned`)).toContain(
    "set bootstrap_command",
  );
  expect(forced("")).toContain("there is no shell");
  expect(forced("exec /bin/sh -c 'id'")).toStartWith("fail words ");
  expect(existsSync(join(folder, "pwned"))).toBe(false);
});

test("a client cannot choose another policy than the one of its key", () => {
  put();
  const [own, loose] = [join(folder, "own.yaml"), join(folder, "loose.yaml")];
  for (const path of [own, loose]) writeFileSync(path, "max_args: 1\n", { mode: 0o600 });
  const launch = (more: string) =>
    say(["forced", own], { env: { SSH_ORIGINAL_COMMAND: `a launch ${digest} ${nonce} ${more}` } });
  expect(launch(`--policy ${loose}`)).toStartWith("fail forced ");
  expect(launch("")).toBe(`hit ${digest}\nhello 1 --policy ${own}`);
});
