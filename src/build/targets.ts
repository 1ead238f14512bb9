/** The machines that programs are built for, and Bun's runtime for each. */
import { createHash } from "node:crypto";
import { existsSync, mkdirSync, readFileSync, renameSync, rmSync } from "node:fs";
import { join } from "node:path";

export const top = join(import.meta.dir, "../..");

/** Bun's name of each target, and the npm package that holds its runtime. */
export const targets = {
  "linux-x64": { bun: "bun-linux-x64", runtime: "@oven/bun-linux-x64" },
  "linux-arm64": { bun: "bun-linux-arm64", runtime: "@oven/bun-linux-aarch64" },
  "linux-x64-musl": { bun: "bun-linux-x64-musl", runtime: "@oven/bun-linux-x64-musl" },
} as const;
export type Target = keyof typeof targets;

/** @throws Error that names those there are */
export function targetNamed(name: string): Target {
  if (Object.hasOwn(targets, name)) return name as Target;
  throw new Error(`unknown target ${name}: there are ${Object.keys(targets).join(", ")}`);
}

/** This machine, by what the running Bun was built for. */
export function ownTarget(): string {
  const musl = existsSync("/lib/ld-musl-x86_64.so.1") && !existsSync("/lib64/ld-linux-x86-64.so.2");
  return `${process.platform}-${process.arch}${musl ? "-musl" : ""}`;
}

/**
 * The Bun executable of another target. It comes as a package through npm, with whatever registry, proxy and cache npm is set up for,
 * and is held against the hash that package-lock.json has for it. (Bun's own download knows neither.)
 */
export function runtime(target: Target): string {
  const { runtime: name } = targets[target];
  const locked = (
    JSON.parse(readFileSync(join(top, "package-lock.json"), "utf8")) as {
      packages: Record<string, { version: string; integrity: string } | undefined>;
    }
  ).packages[`node_modules/${name}`];
  if (locked?.version !== Bun.version) {
    throw new Error(
      `package-lock.json has ${name} ${locked?.version ?? "not at all"}, but this is Bun ${Bun.version}: run npm ci`,
    );
  }
  const folder = join(top, "node_modules/.cache/runtimes", `${target}-${locked.version}`);
  const executable = join(folder, "package/bin/bun");
  if (existsSync(executable)) return executable;

  const scratch = `${folder}.${process.pid}`;
  mkdirSync(scratch, { recursive: true });
  try {
    const packed = Bun.spawnSync(
      [
        "npm",
        "pack",
        "--silent",
        "--prefer-offline",
        "--pack-destination",
        scratch,
        `${name}@${locked.version}`,
      ],
      { cwd: top, env: process.env },
    );
    if (!packed.success) throw new Error(`npm could not get ${name}: ${packed.stderr.toString().trim()}`);
    const archive = join(scratch, packed.stdout.toString().trim());
    const integrity = `sha512-${createHash("sha512").update(readFileSync(archive)).digest("base64")}`;
    if (integrity !== locked.integrity)
      throw new Error(`${name} is not what package-lock.json says: ${integrity}`);
    const unpacked = Bun.spawnSync(["tar", "-xzf", archive, "-C", scratch], { env: process.env });
    if (!unpacked.success) throw new Error(`cannot unpack ${name}: ${unpacked.stderr.toString().trim()}`);
    rmSync(archive);
    // Somebody else's build may have put it there meanwhile; either is as good.
    if (!existsSync(folder)) renameSync(scratch, folder);
  } finally {
    rmSync(scratch, { recursive: true, force: true });
  }
  return executable;
}
