/** Whose process this is, as the system knows it: ssh does not look at USER and HOME either. */
import { readFileSync } from "node:fs";

export interface Account {
  name: string;
  home: string;
}

let known: Account | undefined;

/** `passwd(5)`, or what the name service has; the environment where neither knows of the user. */
export function account(): Account {
  known ??= find(String(process.getuid!()));
  return known;
}

function find(uid: string): Account {
  const { USER, HOME } = process.env;
  for (const entries of [passwd, nameService]) {
    const fields = entries(uid)
      .split("\n")
      .map((line) => line.split(":"))
      .find((entry) => entry[2] === uid);
    if (fields?.[5]) return { name: fields[0]!, home: fields[5] };
  }
  return { name: USER || uid, home: HOME || "/" };
}

function passwd(): string {
  try {
    return readFileSync("/etc/passwd", "utf8");
  } catch {
    return "";
  }
}

function nameService(uid: string): string {
  if (Bun.which("getent") === null) return "";
  const asked = Bun.spawnSync(["getent", "passwd", uid], { env: { ...process.env }, timeout: 5000 });
  return asked.stdout.toString();
}
