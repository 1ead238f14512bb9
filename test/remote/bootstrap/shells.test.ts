/** The command through every login shell, quiet and noisy; the script in every /bin/sh. */
import { afterAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { oneLine, quoted } from "../../../src/remote/bootstrap/command.ts";
import { lacksPrograms, lacksRoot } from "../../needs.ts";
import { Host, hello, programs } from "./local.ts";

setDefaultTimeout(60_000);

const folder = mkdtempSync(join(tmpdir(), "ollie-programs-"));
const small = programs(join(folder, "a b"), { mib: 1 });
afterAll(() => rmSync(folder, { recursive: true, force: true }));

/** Installs, then finds what is there. */
async function missAndHit(host: Host, greeting: string): Promise<void> {
  try {
    const options = { programs: small, root: "/srv/my sessions", policy: '/etc/a"b$c.yaml' };
    const first = await host.boot(options);
    expect(first.hit).toBe(false);
    expect(await hello(first)).toBe(greeting);
    const second = await host.boot(options);
    expect([second.hit, second.uploaded, second.digest]).toEqual([true, 0, first.digest]);
    expect(await hello(second)).toBe(greeting);
    expect(host.installed()).toEqual([`ollie-remote-${first.digest}`]);
    expect(host.commands.length).toBe(2);
  } finally {
    host.remove();
  }
}
const greeting = 'hello 1 --root /srv/my sessions --policy /etc/a"b$c.yaml';

const noise = 'echo "Welcome! OLLIE1 hit"\nprintf "no line end"\n';
const bashNoise = join(folder, "noise");
writeFileSync(bashNoise, noise);

describe("login shell", () => {
  for (const name of ["bash", "dash", "zsh", "mksh", "fish", "tcsh", "busybox"]) {
    const shell = name === "busybox" ? [name, "sh"] : [name];
    test.skipIf(lacksPrograms(name))(`${name}, quiet`, () => missAndHit(new Host({ shell }), greeting));
  }

  // sshd's bash reads ~/.bashrc; one that is told to run a command reads what BASH_ENV names.
  test("bash, noisy", () =>
    missAndHit(new Host({ shell: ["bash"], env: { BASH_ENV: bashNoise } }), greeting));

  for (const [name, rc] of [
    ["zsh", ".zshenv"],
    ["fish", ".config/fish/config.fish"],
    ["tcsh", ".cshrc"],
  ] as const) {
    test.skipIf(lacksPrograms(name))(`${name}, noisy`, () => {
      const host = new Host({ shell: [name] });
      const file = join(host.home, rc);
      mkdirSync(dirname(file), { recursive: true });
      writeFileSync(file, noise);
      return missAndHit(host, greeting);
    });
  }

  test("one that knows nothing but a program and words in single quotes", () => {
    const strict = join(folder, "strict");
    writeFileSync(
      strict,
      `#!/bin/sh
case $2 in "exec /bin/sh -c '"*) ;; *) exit 9 ;; esac
case $2 in *'\\'* | *'!'* | *'
'*) exit 8 ;; esac
exec /bin/sh -c "$2"
`,
      { mode: 0o755 },
    );
    return missAndHit(new Host({ shell: [strict] }), greeting);
  });
});

test("what runs there makes files as the login does, ollie's own are nobody else's", async () => {
  const shell = join(folder, "masked");
  writeFileSync(shell, '#!/bin/sh\numask 027\nexec /bin/sh "$@"\n', { mode: 0o755 });
  const host = new Host({ shell: [shell] });
  const seen = async () => {
    const booted = await host.boot({ programs: small });
    await hello(booted);
    return [booted.hit, readFileSync(join(host.home, "mask"), "utf8").trim()];
  };
  try {
    expect(await seen()).toEqual([false, "0027"]);
    expect(await seen()).toEqual([true, "0027"]);
    for (const path of [".cache", ".cache/ollie/bin", ".local/state/ollie/remote"])
      expect(statSync(join(host.home, path)).mode & 0o077).toBe(0);
  } finally {
    host.remove();
  }
});

describe("/bin/sh", () => {
  for (const name of ["bash", "busybox", "mksh", "posh"]) {
    // What /bin/sh is, is exchanged in a mount namespace.
    test.skipIf(lacksRoot() || lacksPrograms(name))(name, () =>
      missAndHit(new Host({ mounts: `mount --bind ${Bun.which(name)} /bin/sh` }), greeting),
    );
  }
});

describe("one line", () => {
  test("what is open goes on, what is closed is ended", () => {
    const text = `# comment
f() {
  if a; then
    b $(c)
  else
    d ||
      e
  fi
  case $x in
    y | z) g ;;
    *)
      h
      ;;
  esac
}
(
  i
) 2> /dev/null
`;
    expect(oneLine(text)).toBe(
      "f() { if a; then b $(c); else d || e; fi; case $x in y | z) g ;; *) h; ;; esac; }; ( i; ) 2> /dev/null",
    );
  });

  test.each(["it's", "a\\b", "wow!", "two\nlines"])("%j is refused rather than passed on", (word) => {
    expect(() => quoted(word)).toThrow("cannot be passed through the login shell");
  });
});
