/** The commits of the working folder's repository as one file, which `git fetch` reads on another machine. */
import { existsSync } from "node:fs";
import { coded } from "../../protocol/errors.ts";

/** Programs that a repository names in its own configuration are not run: who exports is not in the sandbox. */
const harmless = [
  "-c",
  "core.fsmonitor=false",
  "-c",
  "core.hooksPath=/dev/null",
  "-c",
  "protocol.allow=never",
];
const environment = {
  PATH: "/usr/local/bin:/usr/bin:/bin:/run/current-system/sw/bin",
  LC_ALL: "C",
  GIT_CONFIG_NOSYSTEM: "1",
  GIT_CONFIG_GLOBAL: "/dev/null",
  GIT_TERMINAL_PROMPT: "0",
  GIT_NO_LAZY_FETCH: "1",
  GIT_OPTIONAL_LOCKS: "0",
};
/** Milliseconds for which git may take. */
const patience = 10 * 60_000;

/**
 * @param program path of git
 * @returns the commit of HEAD
 * @throws CodedFault `session.no_git`, `session.bundle`
 */
export async function bundle(program: string, cwd: string, file: string): Promise<string | undefined> {
  if (!existsSync(`${cwd}/.git`))
    throw coded("session.no_git", `${cwd} is no git repository`, { hint: "export it as tar" });
  const { text } = await git(program, cwd, ["rev-parse", "--verify", "--quiet", "HEAD"]);
  const { status, said } = await git(program, cwd, [
    "bundle",
    "create",
    "--quiet",
    file,
    "--all",
    ...(text ? ["HEAD"] : []),
  ]);
  if (status !== 0)
    throw coded("session.bundle", `git could not make a bundle: ${said.trim().slice(0, 500)}`);
  return text.trim() || undefined;
}

async function git(
  program: string,
  cwd: string,
  args: string[],
): Promise<{ status: number; text: string; said: string }> {
  let child: Bun.Subprocess<"ignore", "pipe", "pipe">;
  try {
    child = Bun.spawn([program, ...harmless, "-C", cwd, ...args], {
      env: environment,
      stdin: "ignore",
      stdout: "pipe",
      stderr: "pipe",
      timeout: patience,
    });
  } catch (error) {
    throw coded(
      "session.no_git",
      "there is no git on this host",
      { hint: "export it as tar" },
      { cause: error },
    );
  }
  const [status, text, said] = await Promise.all([
    child.exited,
    new Response(child.stdout).text(),
    new Response(child.stderr).text(),
  ]);
  return { status, text, said };
}
