/**
 * The keeper: a sleeping /bin/sh (1 MB) that outlives this process to end the programs it was running.
 *
 * It reads a pipe of which only this process holds the other end. When that end closes, be it by a crash or by SIGKILL, it kills
 * every process that carries this process's tag or its mark, children of children and those with a session of their own included.
 * PR_SET_PDEATHSIG would reach only the direct child, and to set it takes a launcher of one's own; this costs a call nothing.
 */
import { closeSync } from "node:fs";
import { owner } from "./family.ts";
import { pipe } from "./libc.ts";
import { firstCall } from "./tag.ts";

/**
 * `$1` is the owner's mark; `$2` its pid and `$3` the number of its first call, by which its tags are known: there are fewer than 2^24
 * calls. Plain POSIX sh without any program: a host may have nothing else, and `read` skips the NULs of an environ. At most twenty
 * rounds, because what is being killed may still be forking (what is stopped forks no more, and keeps its place under the limit of
 * processes until all have been stopped); and one that finds nobody is followed by another, because the environ of a process within
 * execve reads empty.
 */
const script = `
trap '' HUP INT TERM
tagged() {
  while read -r max file locks soft _; do
    [ "$max $file $locks" = "Max file locks" ] || continue
    case $soft in *[!0-9]*) return 1 ;; esac
    [ "$((soft >> 32))" = "$2" ] && [ "$(((soft - $3) & 0xffffffff))" -le 16777215 ]
    return
  done <"$process/limits"
  return 1
}
marked() {
  while IFS= read -r line || [ "$line" ]; do
    case $line in *"$1"*) return 0 ;; esac
  done <"$process/environ"
  return 1
}
read -r _
round=0 calm=0
while [ "$calm" -lt 2 ] && [ "$round" -lt 20 ]; do
  calm=$((calm + 1)) round=$((round + 1)) found=
  for process in /proc/[0-9]*; do
    tagged "$@" || marked "$@" || continue
    pid=\${process#/proc/}
    kill -STOP "$pid"
    calm=0 found="$found -$pid $pid"
  done
  for pid in $found; do kill -KILL "$pid"; done
done 2>/dev/null`;

let holding = false;
let current: Bun.Subprocess | undefined;

/** Starts the keeper unless one runs. Called before every program's start. */
export function ensureKeeper(): void {
  if (holding) return;
  const { read, write } = pipe();
  try {
    const keeper = Bun.spawn(
      ["/bin/sh", "-c", script, "ollie-keeper", `/${owner}/`, String(process.pid), String(firstCall)],
      {
        stdin: read,
        stdout: "ignore",
        stderr: "ignore",
        detached: true,
        cwd: "/",
        env: {},
      },
    );
    holding = true;
    current = keeper;
    keeper.unref();
    keeper.exited.then(() => {
      holding = false;
      closeSync(write);
    });
  } finally {
    closeSync(read);
  }
}

/** This process ends and has nothing left running: spares the keeper the search for it. */
export function dismissKeeper(): void {
  current?.kill("SIGKILL");
}
