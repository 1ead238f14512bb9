/** Whose process this is. */
let name: string | undefined;

/** The user's name. (Bun's `userInfo` takes it from USER, which services and containers do not have.) */
export function account(): string {
  name ??=
    Bun.spawnSync(["id", "-un"], { env: { ...process.env }, stderr: "ignore" })
      .stdout.toString()
      .trim() ||
    process.env.USER ||
    String(process.getuid!());
  return name;
}
