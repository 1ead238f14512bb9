/** The configuration as the ssh program itself understands it. */
import { sshFault } from "../fault.ts";
import type { Destination } from "../target.ts";
import type { Options } from "./settings.ts";

/** `Match exec` may run programs of the user's. Milliseconds. */
const limit = 20_000;

/** The ssh program: the one that the profile names, else that of the PATH; undefined where there is none. */
export function findProgram(configured: string | undefined): string | undefined {
  return Bun.which(configured ?? "ssh") ?? undefined;
}

/** What the program takes before `--` to mean this host. */
export function destinationArguments({ user, port }: Destination): string[] {
  return [...(user === undefined ? [] : ["-l", user]), ...(port === undefined ? [] : ["-p", String(port)])];
}

/** `ssh -G`. @throws Fault `ssh.config` with what ssh says is wrong */
export async function askProgram(
  program: string,
  destination: Destination,
  configFile: string | undefined,
  signal: AbortSignal,
): Promise<Options> {
  const child = Bun.spawn(
    [
      program,
      "-G",
      ...(configFile === undefined ? [] : ["-F", configFile]),
      ...destinationArguments(destination),
      "--",
      destination.host,
    ],
    { env: { ...process.env }, stdin: "ignore", stdout: "pipe", stderr: "pipe", timeout: limit, signal },
  );
  const [out, err, code] = await Promise.all([child.stdout.text(), child.stderr.text(), child.exited]);
  signal.throwIfAborted();
  if (code !== 0) {
    throw sshFault(
      "ssh.config",
      `ssh cannot read its configuration for ${destination.host}: ${err.trim().slice(0, 500) || `ssh -G ended with ${code}`}`,
    );
  }
  const options: Options = new Map();
  for (const line of out.split("\n")) {
    const blank = line.indexOf(" ");
    if (blank <= 0) continue;
    const key = line.slice(0, blank);
    options.set(key, [...(options.get(key) ?? []), line.slice(blank + 1)]);
  }
  return options;
}
