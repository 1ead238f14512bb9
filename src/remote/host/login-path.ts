/** The PATH that the user has when he logs in: asked of the login shell once, since ollie-remote itself was started without its files. */
import { account } from "./facts.ts";

/** Milliseconds; a shell's files may wait for something that does not come. */
const patience = 5000;

/** Undefined where the shell does not tell; the usual folders must then do. */
export async function loginPath(
  environment: Readonly<Record<string, string | undefined>>,
): Promise<string | undefined> {
  const mark = `ollie-${crypto.randomUUID()}`;
  const { HOME, USER, LOGNAME, LANG } = environment;
  const env = Object.fromEntries(
    Object.entries({
      HOME,
      USER,
      LOGNAME,
      LANG,
      PATH: environment.PATH ?? "/usr/bin:/bin",
      TERM: "dumb",
    }).filter(([, value]) => value !== undefined),
  ) as Record<string, string>;
  try {
    const { shell } = account();
    const child = Bun.spawn([shell, "-l", "-c", `echo ${mark}; exec /usr/bin/env`], {
      env,
      cwd: "/",
      stdin: "ignore",
      stdout: "pipe",
      stderr: "ignore",
      detached: true,
      timeout: patience,
      killSignal: "SIGKILL",
    });
    const text = await Promise.race([new Response(child.stdout).text(), Bun.sleep(patience).then(() => "")]);
    const printed = text.slice(text.lastIndexOf(mark));
    return /^PATH=(.*)$/m.exec(printed)?.[1] || undefined;
  } catch {
    return undefined;
  }
}
