/**
 * Builds the programs: `bun build.ts [--all | --target NAME]… [--remote NAME]… [--out DIR] [--force]`.
 *
 * Without a target: for this machine, into `dist/`. With targets: each into a folder of its own, `dist/linux-arm64/` and so on. A
 * build whose inputs have not changed since the last one is left as it is.
 *
 * What goes to other hosts lies beside olliesrv, in the one folder where olliesrv looks for it:
 *
 * - `ollie-remote`: for hosts of the kind that olliesrv itself runs on;
 * - `ollie-remote-linux-arm64` and so on: for others. `--remote NAME` (or `all`) makes them, and once they are there every build makes them
 *   anew; those of somebody else's build can be dropped into the folder just as well;
 * - `ollie-remote-linux-x64.zst`, `.libc` and so on, and `manifest.json`: packed for sending, the C library for hosts that have none which Bun
 *   could use, and what all of that is (`src/build/release.ts`).
 *
 * `--release [--key FILE] [--level N]` makes the folders of all targets (or of those named) with the programs for all hosts packed, and a
 * manifest of them, which the key signs.
 *
 * The same inputs give the same bytes, wherever the checkout lies and whenever it is built: nothing here may put a path, a date or the
 * order of a directory into the output.
 */
import { createHash } from "node:crypto";
import {
  chmodSync,
  copyFileSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { join, resolve } from "node:path";
import { parseArgs } from "node:util";
import { type Build, compile, list } from "./src/build/compile.ts";
import { Publisher, packRelease, packRemotes } from "./src/build/release.ts";
import { ownTarget, type Target, targetNamed, targets, top } from "./src/build/targets.ts";

const programs = ["olliesrv", "ollie-9p", "ollie-remote"];
const outputs = [...programs, "o"];

const { version } = JSON.parse(readFileSync(join(top, "package.json"), "utf8")) as { version: string };

const { values: options } = parseArgs({
  options: {
    all: { type: "boolean", default: false },
    target: { type: "string", multiple: true, default: [] },
    remote: { type: "string", multiple: true, default: [] },
    out: { type: "string", default: join(top, "dist") },
    force: { type: "boolean", default: false },
    release: { type: "boolean", default: false },
    key: { type: "string" },
    level: { type: "string", default: "19" },
  },
});

/** The commit that is checked out, `-dirty` when tracked files differ from it, "unknown" outside git. */
function commit(): string {
  const git = (...args: string[]) => Bun.spawnSync(["git", "-C", top, ...args], { stderr: "ignore" });
  try {
    // A checkout that lies inside some other repository would otherwise name that one's commit.
    if (git("rev-parse", "--show-prefix").stdout.toString() !== "\n") return "unknown";
    const described = git("describe", "--always", "--dirty", "--abbrev=12", "--exclude=*");
    return (described.success && described.stdout.toString().trim()) || "unknown";
  } catch {
    return "unknown"; // no git on this machine
  }
}

/** A hash over everything that decides what comes out. */
function inputsHash(build: Build, target: Target | undefined, remotes: readonly Target[]): string {
  const hash = createHash("sha256");
  const { version: bun } = Bun;
  hash.update(
    JSON.stringify({ build, target, remotes, bun, platform: process.platform, arch: process.arch }),
  );
  const files = ["build.ts", "package-lock.json", "tsconfig.json", ...list("{src,actors,data}/**")];
  for (const file of files) {
    const content = readFileSync(join(top, file));
    hash.update(`${file}\0${content.length}\0`).update(content);
  }
  return hash.digest("hex");
}

/** Those asked for, and those that are there from an earlier build: an old one beside a new olliesrv would be sent to hosts. */
function remotesOf(folder: string, own: string): Target[] {
  const asked = options.remote.includes("all") ? Object.keys(targets) : options.remote.map(targetNamed);
  return (Object.keys(targets) as Target[]).filter(
    // Its own is there in any case, under its short name.
    (name) => name !== own && (asked.includes(name) || existsSync(join(folder, `ollie-remote-${name}`))),
  );
}

/** Builds into a scratch folder and renames, so that a program that is running or being started is never a half-written one. */
async function buildInto(folder: string, target: Target | undefined, publisher?: Publisher): Promise<void> {
  const build: Build = { version, commit: commit(), target: target ?? ownTarget() };
  const signed = publisher?.name ? { ...build, publisher: publisher.name } : build;
  const remotes = publisher ? [] : remotesOf(folder, build.target);
  const stamp = join(folder, ".inputs");
  const hash = inputsHash(signed, target, remotes);
  const names = [...outputs, ...remotes.map((name) => `ollie-remote-${name}`)];
  const fresh =
    names.every((name) => existsSync(join(folder, name))) &&
    existsSync(stamp) &&
    readFileSync(stamp, "utf8") === hash;
  if (fresh && !options.force) return;

  sweep(folder);
  const scratch = join(folder, `.build.${process.pid}`);
  mkdirSync(scratch, { recursive: true });
  try {
    // What is sent to hosts is the same whoever signs it.
    for (const program of programs)
      await compile(program, join(scratch, program), program === "ollie-remote" ? build : signed, target);
    // A program carries the name of the file that it was first written to.
    for (const name of remotes)
      await compileAs(scratch, `ollie-remote-${name}`, { ...build, target: name }, name);
    copyFileSync(join(top, "data/scripts/o"), join(scratch, "o"));
    chmodSync(join(scratch, "o"), 0o755);
    if (!publisher) {
      const sent = [
        { target: build.target, file: join(scratch, "ollie-remote") },
        ...remotes.map((name) => ({ target: name, file: join(scratch, `ollie-remote-${name}`) })),
      ];
      names.push(...(await packRemotes(scratch, sent, version, quick)));
    }
    const sums = names.map((name) => {
      const sum = createHash("sha256").update(readFileSync(join(scratch, name)));
      return `${sum.digest("hex")}  ${name}\n`;
    });
    writeFileSync(join(scratch, "SHA256SUMS"), sums.join(""));
    rmSync(stamp, { force: true });
    for (const name of [...names, "SHA256SUMS"]) renameSync(join(scratch, name), join(folder, name));
    writeFileSync(stamp, hash);
  } finally {
    rmSync(scratch, { recursive: true, force: true });
  }
}

/** Takes away what builds have left that were killed: hundreds of megabytes each. */
function sweep(folder: string): void {
  for (const name of existsSync(folder) ? readdirSync(folder) : []) {
    const pid = /^\.build\.(\d+)$/.exec(name)?.[1];
    if (pid !== undefined && !existsSync(`/proc/${pid}`))
      rmSync(join(folder, name), { recursive: true, force: true });
  }
}

/** Of zstd, for a build that somebody waits for. */
const quick = { zstd: 3 };

async function compileAs(scratch: string, name: string, build: Build, target: Target): Promise<void> {
  const inner = join(scratch, name.slice("ollie-remote-".length));
  await compile("ollie-remote", join(inner, "ollie-remote"), build, target);
  renameSync(join(inner, "ollie-remote"), join(scratch, name));
  rmSync(inner, { recursive: true });
}

try {
  const everything = options.all || (options.release && options.target.length === 0);
  const wanted = everything ? (Object.keys(targets) as Target[]) : options.target.map(targetNamed);
  const out = resolve(options.out);
  const publisher = options.release ? new Publisher(options.key && resolve(options.key)) : undefined;
  process.chdir(top);
  if (wanted.length === 0) await buildInto(out, undefined);
  for (const name of wanted) await buildInto(join(out, name), name, publisher);
  if (publisher) await packRelease(out, wanted, version, publisher, Number(options.level));
} catch (error) {
  console.error(`build: ${(error as Error).message}`);
  process.exit(1);
}
