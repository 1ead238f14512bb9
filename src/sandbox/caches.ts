/**
 * Folders that build tools make at their first use. A tool in its sandbox could not: the folder above, mostly the home folder, is not
 * its to write. So ollie makes those of programs that are installed, empty, as the programs would have.
 */
import { existsSync, mkdirSync } from "node:fs";
import { join } from "node:path";

/** Programs, any of which has a use for the folders below the home folder. */
const made: [programs: string, folders: string][] = [
  ["go gopls", ".cache/go-build go/pkg .cache/gopls"],
  ["golangci-lint", ".cache/golangci-lint"],
  ["npm npx", ".npm"],
  ["node", ".cache/node .cache/node-gyp .cache/typescript"],
  ["yarn", ".cache/yarn .yarn/berry"],
  ["pnpm", ".cache/pnpm .local/share/pnpm/store"],
  ["bun", ".bun/install/cache"],
  ["deno", ".cache/deno"],
  ["cargo", ".cargo/registry .cargo/git"],
  ["pip pip3 python3", ".cache/pip"],
  ["uv uvx", ".cache/uv"],
  ["java mvn", ".m2/repository .m2/wrapper"],
  [
    "java gradle",
    ".gradle/caches .gradle/daemon .gradle/native .gradle/notifications .gradle/wrapper/dists .gradle/.tmp",
  ],
  ["composer", ".cache/composer"],
  ["bundle", ".bundle/cache"],
  ["dotnet", ".nuget/packages .local/share/NuGet"],
  ["ccache", ".cache/ccache"],
  ["clangd", ".cache/clangd"],
  ["zig", ".cache/zig"],
  ["fc-cache", ".cache/fontconfig"],
  ["pre-commit", ".cache/pre-commit"],
];

/**
 * @param path folders of the PATH, with colons
 * @param homeFolder nothing is made where it does not exist
 */
export function makeCaches(homeFolder: string, path: string): void {
  if (!existsSync(homeFolder)) return;
  for (const [programs, folders] of made) {
    if (!programs.split(" ").some((program) => Bun.which(program, { PATH: path }))) continue;
    for (const folder of folders.split(" ")) {
      try {
        mkdirSync(join(homeFolder, folder), { recursive: true, mode: 0o700 });
      } catch {} // a home that cannot be written: then the program itself could not either
    }
  }
}
