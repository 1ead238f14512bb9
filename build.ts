/**
 * Builds the programs: `bun build.ts [--all | --target NAME]… [--out DIR] [--force]`.
 *
 * Without a target: for this machine, into `dist/`. With targets: each into a folder of its own, `dist/linux-arm64/` and so on. A
 * build whose inputs have not changed since the last one is left as it is.
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
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { join, resolve } from "node:path";
import { parseArgs } from "node:util";

/** Bun's name of each target, and the npm package that holds its runtime. */
const targets = {
  "linux-x64": { bun: "bun-linux-x64", runtime: "@oven/bun-linux-x64" },
  "linux-arm64": { bun: "bun-linux-arm64", runtime: "@oven/bun-linux-aarch64" },
  "linux-x64-musl": { bun: "bun-linux-x64-musl", runtime: "@oven/bun-linux-x64-musl" },
} as const;
type Target = keyof typeof targets;

const programs = ["olliesrv", "ollie-9p"];
const outputs = [...programs, "o"];

const top = import.meta.dir;
const { version } = JSON.parse(readFileSync(join(top, "package.json"), "utf8")) as { version: string };

const { values: options } = parseArgs({
  options: {
    all: { type: "boolean", default: false },
    target: { type: "string", multiple: true, default: [] },
    out: { type: "string", default: join(top, "dist") },
    force: { type: "boolean", default: false },
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

function list(pattern: string): string[] {
  return [...new Bun.Glob(pattern).scanSync({ cwd: top })].sort();
}

/** What is below `data/`, for `src/config/data.ts`. (An embedded folder would lie in the program in the order its file system lists it.) */
function data(): Record<string, string> {
  const utf8 = new TextDecoder("utf-8", { fatal: true });
  const files = list("data/**").map((path) => [
    path.slice("data/".length),
    utf8.decode(readFileSync(join(top, path))),
  ]);
  return Object.fromEntries(files);
}

/** A hash over everything that decides what comes out. */
function inputsHash(build: { version: string; commit: string }, target: Target | undefined): string {
  const hash = createHash("sha256");
  hash.update(
    JSON.stringify({ build, target, bun: Bun.version, platform: process.platform, arch: process.arch }),
  );
  const files = ["build.ts", "package-lock.json", "tsconfig.json", ...list("{src,actors,data}/**")];
  for (const file of files) {
    const content = readFileSync(join(top, file));
    hash.update(`${file}\0${content.length}\0`).update(content);
  }
  return hash.digest("hex");
}

/**
 * The Bun executable of another target. It comes as a package through npm, with whatever registry, proxy and cache npm is set up for,
 * and is held against the hash that package-lock.json has for it. (Bun's own download knows neither.)
 */
function runtime(target: Target): string {
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
      { cwd: top },
    );
    if (!packed.success) throw new Error(`npm could not get ${name}: ${packed.stderr.toString().trim()}`);
    const archive = join(scratch, packed.stdout.toString().trim());
    const integrity = `sha512-${createHash("sha512").update(readFileSync(archive)).digest("base64")}`;
    if (integrity !== locked.integrity)
      throw new Error(`${name} is not what package-lock.json says: ${integrity}`);
    const unpacked = Bun.spawnSync(["tar", "-xzf", archive, "-C", scratch]);
    if (!unpacked.success) throw new Error(`cannot unpack ${name}: ${unpacked.stderr.toString().trim()}`);
    rmSync(archive);
    // Somebody else's build may have put it there meanwhile; either is as good.
    if (!existsSync(folder)) renameSync(scratch, folder);
  } finally {
    rmSync(scratch, { recursive: true, force: true });
  }
  return executable;
}

async function compile(
  program: string,
  folder: string,
  build: { version: string; commit: string },
  target: Target | undefined,
): Promise<void> {
  const result = await Bun.build({
    entrypoints: [`src/${program}.ts`],
    root: ".",
    target: "bun",
    format: "esm",
    minify: true,
    bytecode: true,
    // What a command does not use is not loaded: a start costs the size of what runs.
    splitting: true,
    sourcemap: "linked",
    define: {
      OLLIE_BUILD: JSON.stringify(build),
      OLLIE_DATA: JSON.stringify(data()),
      // Packages in CommonJS would have the folder they were built in as theirs.
      __dirname: '"/"',
      __filename: '"/"',
    },
    compile: {
      ...(target && { target: targets[target].bun, executablePath: runtime(target) }),
      outfile: join(folder, program),
      // The folder a user works in may be anybody's: its .env and bunfig.toml (which can name code to run) are not ours to load.
      autoloadDotenv: false,
      autoloadBunfig: false,
    },
    throw: false,
  });
  if (!result.success) throw new Error(result.logs.map(String).join("\n") || `cannot build ${program}`);
}

/** Builds into a scratch folder and renames, so that a program that is running or being started is never a half-written one. */
async function buildInto(folder: string, target: Target | undefined): Promise<void> {
  const build = { version, commit: commit() };
  const stamp = join(folder, ".inputs");
  const hash = inputsHash(build, target);
  const fresh =
    outputs.every((name) => existsSync(join(folder, name))) &&
    existsSync(stamp) &&
    readFileSync(stamp, "utf8") === hash;
  if (fresh && !options.force) return;

  const scratch = join(folder, `.build.${process.pid}`);
  mkdirSync(scratch, { recursive: true });
  try {
    for (const program of programs) await compile(program, scratch, build, target);
    copyFileSync(join(top, "data/scripts/o"), join(scratch, "o"));
    chmodSync(join(scratch, "o"), 0o755);
    const sums = outputs.map((name) => {
      const sum = createHash("sha256").update(readFileSync(join(scratch, name)));
      return `${sum.digest("hex")}  ${name}\n`;
    });
    writeFileSync(join(scratch, "SHA256SUMS"), sums.join(""));
    rmSync(stamp, { force: true });
    for (const name of [...outputs, "SHA256SUMS"]) renameSync(join(scratch, name), join(folder, name));
    writeFileSync(stamp, hash);
  } finally {
    rmSync(scratch, { recursive: true, force: true });
  }
}

try {
  const wanted = options.all ? Object.keys(targets) : options.target;
  for (const name of wanted) {
    if (!Object.hasOwn(targets, name)) {
      throw new Error(`unknown target ${name}: there are ${Object.keys(targets).join(", ")}`);
    }
  }
  const out = resolve(options.out);
  process.chdir(top);
  if (wanted.length === 0) await buildInto(out, undefined);
  for (const name of wanted) await buildInto(join(out, name), name as Target);
} catch (error) {
  console.error(`build: ${(error as Error).message}`);
  process.exit(1);
}
