/** People of a host: their shells, and what is wrong with their homes. */
import { mkdirSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { succeed } from "./hold.ts";

export interface HostUser {
  /** A path; the name of a program; `cmd`, which answers as that of Windows; `nu`, which takes no more than nushell does. */
  shell?: string;
  /**
   * `noexec`: nothing can be started in it. `readonly`: nothing can be written. `tiny`: 4 MB.
   */
  home?: "noexec" | "readonly" | "tiny";
  /** All files that a shell reads or runs when it starts or ends say something, without an end of line. */
  noisy?: boolean;
  /** More files in the home, by path. */
  files?: Record<string, string>;
}

/** What people log in with. */
export const shells = ["bash", "dash", "zsh", "mksh", "fish", "tcsh"];

/** One of each kind. */
export const everybody: Record<string, string | HostUser> = {
  ...Object.fromEntries(
    shells.flatMap((shell) => [
      [`quiet-${shell}`, { shell }],
      [`noisy-${shell}`, { shell, noisy: true }],
    ]),
  ),
  nu: "nu",
  windows: "cmd",
  restricted: "rbash",
  nobodys: "nologin",
  falsy: "false",
  nx: { home: "noexec" },
  ro: { home: "readonly" },
  tiny: { home: "tiny" },
};

/** Folder of shells that no package has. */
const fakes = "/run/shells";

export const fakeShells = {
  cmd: `#!/bin/sh
word=\${2%% *}
printf "'%s' is not recognized as an internal or external command,\\r\\noperable program or batch file.\\r\\n" "$word" >&2
exit 1
`,
  // An external command: words without anything special in them, and text in single quotes, which knows no escapes.
  nu: `#!/bin/sh
fail() { echo "Error: nu::parser::parse_mismatch: $1" >&2; exit 1; }
[ "$1" = -c ] || fail "$1"
line=\${2#exec }
set --
while [ -n "$line" ]; do
  case $line in
    " "*) line=\${line# } ;;
    "'"*)
      rest=\${line#?}
      word=\${rest%%"'"*}
      [ "$word" != "$rest" ] || fail "unclosed quote"
      set -- "$@" "$word"
      line=\${rest#*"'"} ;;
    *)
      word=\${line%% *}
      case $word in *[!A-Za-z0-9_./=%+-]*) fail "$word" ;; esac
      set -- "$@" "$word"
      line=\${line#"$word"} ;;
  esac
done
exec "$@"
`,
};

export function shellPath(shell: string): string {
  if (shell.startsWith("/")) return shell;
  if (Object.hasOwn(fakeShells, shell)) return join(fakes, shell);
  const found = Bun.which(shell, { PATH: "/usr/bin:/bin:/usr/sbin:/sbin" });
  if (!found) throw new Error(`no shell ${shell} on this machine`);
  return found;
}

const noise = 'echo "welcome to the machine"; printf "no end of line"\n';
const noisyFiles = [
  ".bashrc",
  ".bash_profile",
  ".bash_logout",
  ".profile",
  ".zshenv",
  ".zlogin",
  ".cshrc",
  ".tcshrc",
  ".mkshrc",
  ".config/fish/config.fish",
];

/** Writes a home, which the user can log in to with the key. */
export function fillHome(folder: string, uid: number, user: HostUser, key: string): void {
  const files: Record<string, string> = { ".ssh/authorized_keys": key, ...user.files };
  if (user.noisy) for (const name of noisyFiles) files[name] ??= noise;
  for (const [name, text] of Object.entries(files)) {
    mkdirSync(dirname(join(folder, name)), { recursive: true });
    writeFileSync(join(folder, name), text);
  }
  succeed(["chmod", "-R", "go-w", folder]);
  succeed(["chmod", "700", folder, join(folder, ".ssh")]);
  succeed(["chown", "-R", `${uid}:${uid}`, folder]);
}

/** Words for `sh` that make a home what it is to be; the mounts are the host's own. */
export function mountHome(name: string, kind: HostUser["home"]): string[] {
  const home = `/home/${name}`;
  if (kind === undefined) return [];
  if (kind === "readonly") return [`mount --bind ${home} ${home}`, `mount -o remount,bind,ro ${home}`];
  const options = kind === "tiny" ? "size=4m" : "noexec,size=512m";
  return [
    `cp -a ${home} /run/kept`,
    `mount -t tmpfs -o ${options},mode=700 none ${home}`,
    `cp -a /run/kept/. ${home}/`,
    "rm -r /run/kept",
  ];
}

/** Words for `sh` that put the shells in their place. */
export function mountShells(): string[] {
  return [
    `mkdir ${fakes}`,
    ...Object.entries(fakeShells).flatMap(([name, text]) => [
      `cat > ${fakes}/${name} <<'EOF'\n${text}EOF`,
      `chmod 755 ${fakes}/${name}`,
    ]),
  ];
}
