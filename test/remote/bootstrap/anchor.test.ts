/** A trust anchor in the place of the script: what it is asked, and what becomes of its answers. */
import { afterAll, afterEach, beforeEach, expect, setDefaultTimeout, test } from "bun:test";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { sha256 } from "../../../src/remote/bootstrap/digest.ts";
import { Host, hello, programs } from "./local.ts";

setDefaultTimeout(60_000);

const folder = mkdtempSync(join(tmpdir(), "ollie-programs-"));
const small = programs(join(folder, "1"), { mib: 5 });
const digest = sha256(readFileSync(join(small, "ollie-remote-linux-x64")));
const anchor = join(folder, "anchor");
let host: Host;
beforeEach(() => {
  host = new Host();
});
afterEach(() => host.remove());
afterAll(() => rmSync(folder, { recursive: true, force: true }));

/** The smallest that keeps the grammar; it writes down how it was called. */
function install({ codecs = "gzip", arch = "x86_64", installing = "" } = {}): void {
  writeFileSync(
    anchor,
    `#!/bin/sh
echo "$@" >> "$HOME/calls"
say() { echo; echo "OLLIE1 $nonce $*"; }
step=$1 hash=$2 nonce=$3
file=$HOME/$hash
echo "a banner"
case $step in
  check) if [ -f "$file" ]; then say hit $hash; else say miss arch=${arch} codecs=${codecs}; fi ;;
  install)
    ${installing}
    case $4 in gzip) gzip -dc ;; *) cat ;; esac > "$file"
    chmod 700 "$file"
    if [ "$(sha256sum < "$file")" = "$hash  -" ]; then say installed $hash; else say fail hash; fi ;;
  launch) shift 3; say hit $hash; exec "$file" serve "$@" ;;
esac
`,
    { mode: 0o755 },
  );
}

function calls(): string[] {
  const lines = readFileSync(join(host.home, "calls"), "utf8").trim().split("\n");
  return lines.map((line) => line.replace(/[0-9a-f]{64}/, "HASH").replace(/ [0-9a-f]{16}/, " NONCE"));
}

test("it is asked, given the program, and launched; at the next time asked and launched", async () => {
  install();
  const options = {
    programs: small,
    bootstrapCommand: anchor,
    root: "/srv/ollie",
    policy: "/etc/ollie/policy.yaml",
  };
  const first = await host.boot(options);
  expect([first.hit, first.digest, first.uploaded > 0]).toEqual([false, digest, true]);
  expect(await hello(first)).toBe("hello 1 --root /srv/ollie --policy /etc/ollie/policy.yaml");
  const second = await host.boot(options);
  expect([second.hit, second.uploaded]).toEqual([true, 0]);
  second.channel.close();
  expect(calls()).toEqual([
    "check HASH NONCE",
    `install HASH NONCE gzip ${first.uploaded} 0`,
    "launch HASH NONCE --root /srv/ollie --policy /etc/ollie/policy.yaml",
    "check HASH NONCE",
    "launch HASH NONCE --root /srv/ollie --policy /etc/ollie/policy.yaml",
  ]);
});

test("what it cannot unpack is sent as it is", async () => {
  install({ codecs: "none" });
  const booted = await host.boot({ programs: small, bootstrapCommand: anchor });
  expect(await hello(booted)).toBe("hello 1");
  expect(booted.uploaded).toBe(readFileSync(join(small, "ollie-remote-linux-x64")).length);
});

test("on another machine it is asked for the program of that", async () => {
  install({ arch: "aarch64" });
  const booted = await host.boot({ programs: small, bootstrapCommand: anchor });
  booted.channel.close();
  expect(booted.digest).toBe(sha256(readFileSync(join(small, "ollie-remote-linux-arm64"))));
  expect(calls().map((line) => line.split(" ")[0])).toEqual(["check", "check", "install", "launch"]);
});

test("its refusal is told in its own words, with its own code", async () => {
  install({ installing: 'say fail signature "nobody has signed it"; exit 1' });
  await expect(host.boot({ programs: small, bootstrapCommand: anchor })).rejects.toMatchObject({
    code: "boot.signature",
    message: `${anchor}: nobody has signed it`,
  });
});

test("one that is not there is told as that", async () => {
  await expect(host.boot({ programs: small, bootstrapCommand: "/nowhere/anchor" })).rejects.toMatchObject({
    code: "ssh.no_shell",
    message: expect.stringContaining("/nowhere/anchor: not found"),
  });
});
