/** Running a call's program as root. What sudo wants for it has been found out before (src/elevate). */
import { unattended } from "../exec/env.ts";
import { newMark } from "../exec/family.ts";
import type { Execution } from "./execution.ts";

export interface SudoAccess {
  /** Absolute path of sudo. */
  program: string;
  /** Undefined where sudoers asks for none. */
  password?: Uint8Array;
}

/** Variables that a program gets as root: what the call is about. The others are sudo's own, PATH and HOME among them. */
const passed = /^(?:OLLIE_\w+|TMPDIR|PWD|LANG|LANGUAGE|LC_\w+|TZ)$/;

/**
 * What sudo runs, as root. `$1` is the working folder, the rest the program.
 *
 * The lines of stdin: variables, as words of sh (argv could be read by everybody); the tool's input; and then nothing, until its other
 * end is closed. That happens when the call is over, even if the server was killed, and is the only way to tell: a user cannot send signals to
 * root's processes, and those that sudo hands on reach only this shell. Its program, and all that comes of it, is known by OLLIE_EXEC, which
 * must not be a word of argv: sudo makes a variable of those.
 *
 * Where sudo has left the password unread, as it does if it needs none after all, nothing is run: that line is not to be executed, and without
 * a mark every process would be the call's.
 *
 * A folder of its own for temporary files, since the user could not remove what root leaves in his.
 */
const script = `
n='
'
folder=$1
shift
IFS= read -r variables || exit
case $variables in "export "*) eval "$variables" ;; *) exit 1 ;; esac
[ "$OLLIE_EXEC" ] && IFS= read -r input || exit
cd -- "$folder" || exit
TMPDIR=$TMPDIR/root.$$
mkdir -m 700 -- "$TMPDIR" || exit
sweep() {
  for process in $(grep -l -F -e "$OLLIE_EXEC" /proc/[0-9]*/environ); do
    process=\${process#/proc/}
    kill "-$1" "\${process%/environ}"
  done 2>/dev/null
}
exec 3<&0
trap : HUP INT TERM
{ read -r _; sweep TERM; sleep 0.3; sweep KILL; } <&3 >/dev/null 2>&1 &
watcher=$!
printf '%s' "$input" | "$@" 3<&-
status=$?
{ kill "$watcher"; sweep KILL; rm -rf -- "$TMPDIR"; } 2>/dev/null
exit "$status"`;

/** The same execution through sudo. Its stdin holds the password: `forget` is to be called when the call is over. */
export function asRoot(
  execution: Execution,
  sudo: SudoAccess,
): Omit<Execution, "stdin"> & { stdin: Uint8Array; lifeline: true; forget(): void } {
  const { value } = newMark();
  const variables = Object.entries({ ...unattended, ...execution.env }).filter(
    ([name]) => passed.test(name) || name in unattended,
  );
  const input = Buffer.from(`${exports([...variables, ["OLLIE_EXEC", value]])}\n${execution.stdin}\n`);
  const { password } = sudo;
  const stdin = password ? Buffer.concat([password, Uint8Array.of(10), input]) : input;
  const options = password ? ["-S", "-p", "", "-k"] : ["-n", "-k"];
  return {
    ...execution,
    argv: [
      sudo.program,
      ...options,
      "--",
      "/bin/sh",
      "-c",
      script,
      "ollie-sudo",
      execution.cwd,
      ...execution.argv,
    ],
    env: { PATH: "/usr/bin:/bin", LC_ALL: "C" },
    stdin,
    lifeline: true,
    forget() {
      stdin.fill(0);
      password?.fill(0);
    },
  };
}

/** One line of sh that sets and exports the variables; `$n` is a newline there. */
function exports(variables: readonly (readonly [string, string])[]): string {
  const quote = (value: string) => `'${value.replaceAll("'", `'\\''`).replaceAll("\n", `'"$n"'`)}'`;
  return `export ${variables.map(([name, value]) => `${name}=${quote(value)}`).join(" ")}`;
}
