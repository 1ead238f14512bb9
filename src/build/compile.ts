/** One program: bundled, and compiled together with Bun. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { runtime, type Target, targets, top } from "./targets.ts";

export interface Build {
  version: string;
  commit: string;
  target: string;
  publisher?: string;
}

export function list(pattern: string): string[] {
  return [...new Bun.Glob(pattern).scanSync({ cwd: top })].sort();
}

/** What is below `data/`, for `src/config/data.ts`. (An embedded folder would lie in the program in the order its file system lists it.) */
function data(pattern: string): Record<string, string> {
  const utf8 = new TextDecoder("utf-8", { fatal: true });
  const files = list(pattern).map((path) => [
    path.slice("data/".length),
    utf8.decode(readFileSync(join(top, path))),
  ]);
  return Object.fromEntries(files);
}

/** ssh2 tries these, and does without. Where an install has built them, they are for this machine alone. */
export const nativeParts = ["cpu-features", "./crypto/build/Release/sshcrypto.node"];

/**
 * @param runsOn another machine than this one, or one whose runtime is to be that of package-lock.json
 * @throws Error with what the bundler says
 */
export async function compile(
  program: string,
  outfile: string,
  build: Build,
  runsOn: Target | undefined,
): Promise<void> {
  // What is sent to hosts must be little different from its last version. Bytecode would start it 20 ms sooner, and a tool 2 ms, but of an
  // upgrade it makes 2 MB in the place of a tenth of that; a source map half a MB.
  const onHosts = program === "ollie-remote";
  const result = await Bun.build({
    entrypoints: [`src/${program}.ts`],
    root: ".",
    target: "bun",
    format: "esm",
    minify: true,
    bytecode: !onHosts,
    // What a command does not use is not loaded: a start costs the size of what runs.
    splitting: true,
    sourcemap: onHosts ? "none" : "linked",
    external: nativeParts,
    define: {
      OLLIE_BUILD: JSON.stringify(build),
      OLLIE_ON_HOST: String(onHosts),
      // Agents, prompts and tools have no business on a host that only lends its hands.
      OLLIE_DATA: JSON.stringify(data(onHosts ? "data/sandbox/**" : "data/**")),
      // Packages in CommonJS would have the folder they were built in as theirs.
      __dirname: '"/"',
      __filename: '"/"',
    },
    compile: {
      ...(runsOn && { target: targets[runsOn].bun, executablePath: runtime(runsOn) }),
      outfile,
      // The folder a user works in may be anybody's: its .env and bunfig.toml (which can name code to run) are not ours to load.
      autoloadDotenv: false,
      autoloadBunfig: false,
    },
    throw: false,
  });
  if (!result.success) throw new Error(result.logs.map(String).join("\n") || `cannot build ${program}`);
}
