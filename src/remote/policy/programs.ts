/** Which file is meant by the name of a program, where the PATH of a request has no say in it. */
import { accessSync, constants, readFileSync, statSync } from "node:fs";
import { isAbsolute, join } from "node:path";
import { coded } from "../protocol/errors.ts";
import type { ResolvedProgram } from "./host-policy.ts";

/** Folders that only the system's administrator writes to, in the order in which they are searched; the last two are those of NixOS. */
export const systemFolders = [
  "/usr/local/bin",
  "/usr/bin",
  "/bin",
  "/usr/local/sbin",
  "/usr/sbin",
  "/sbin",
  "/run/current-system/sw/bin",
  "/nix/var/nix/profiles/default/bin",
] as const;

/** Programs of a Rust toolchain, for each of which rustup puts a proxy into `~/.cargo/bin`. */
const rustPrograms = new Set([
  "cargo",
  "cargo-clippy",
  "cargo-fmt",
  "clippy-driver",
  "rust-gdb",
  "rust-lldb",
  "rustc",
  "rustdoc",
  "rustfmt",
]);

/** Folder of the programs of the toolchain that rustup uses by default, or undefined: `~/.rustup/settings.toml`. */
export function rustToolchain(home: string): string | undefined {
  try {
    const settings = readFileSync(join(home, ".rustup/settings.toml"), "utf8");
    const [, name] = /^default_toolchain\s*=\s*"([^"/]+)"/m.exec(settings) ?? [];
    return name === undefined || name.startsWith(".")
      ? undefined
      : join(home, ".rustup/toolchains", name, "bin");
  } catch {
    return undefined;
  }
}

/**
 * A toolchain's own program comes before the proxy: a proxy asks RUSTUP_HOME what to run, and may want to download it.
 * @param folders after which the rustup proxies are looked at
 */
export function findProgram(
  name: string,
  home: string,
  folders: readonly string[],
): ResolvedProgram | undefined {
  const rust = rustPrograms.has(name);
  const places = [
    ...(rust ? [rustToolchain(home)] : []),
    ...folders,
    ...(rust ? [join(home, ".cargo/bin")] : []),
  ];
  for (const folder of places) {
    if (folder === undefined || !isAbsolute(folder)) continue;
    const path = join(folder, name);
    // The proxies are one program under many names: neither the link nor the name may be lost.
    if (isProgram(path)) return { path, argv0: name };
  }
  return undefined;
}

export function isProgram(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return statSync(path).isFile();
  } catch {
    return false;
  }
}

export function noProgram(name: string, where: string): Error {
  return coded("op.program", `there is no program ${name} ${where}`);
}
