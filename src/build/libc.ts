/**
 * The C library for hosts that have none which Bun could use: musl systems, NixOS, a glibc older than 2.17. There ollie-remote is started by
 * the loader of this pack, `ld-linux… --library-path PACK ollie-remote`.
 *
 * The files are those of the machine that builds: its own glibc, and for another processor the one of its cross compiler. They are so
 * widely used, and patched by whoever maintains that machine, that nothing has to be fetched from elsewhere; which version it is stands in
 * the pack, and in a release's manifest its hash. Where the machine has none for a target, no pack is made, but for a release that is an error.
 */
import { createHash } from "node:crypto";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";

/** The loader, and what Bun names as needed (DT_NEEDED). Since glibc 2.34 all else is in libc.so.6, resolver and user database too. */
const libraries = ["libc.so.6", "libm.so.6", "libpthread.so.0", "libdl.so.2"];
const places: Record<string, { loader: string; folders: string[] }> = {
  "linux-x64": {
    loader: "ld-linux-x86-64.so.2",
    folders: ["/lib/x86_64-linux-gnu", "/usr/x86_64-linux-gnu/lib", "/lib64", "/usr/lib64"],
  },
  "linux-arm64": {
    loader: "ld-linux-aarch64.so.1",
    folders: ["/lib/aarch64-linux-gnu", "/usr/aarch64-linux-gnu/lib", "/lib64", "/usr/lib64"],
  },
};

/**
 * The content of `ollie-remote-TARGET.libc`: a line of JSON (`src/remote/bootstrap/libc.ts` reads it), then the files one after another.
 * `from`: which library it is, in the words of its own. Undefined where it cannot be made here.
 */
export function libcPack(target: string): { content: Buffer; from: string } | undefined {
  const place = places[target];
  if (!place) return undefined;
  const names = [place.loader, ...libraries];
  const folder = place.folders.find((path) => names.every((name) => existsSync(join(path, name))));
  if (folder === undefined) return undefined;
  const files = names.map((name) => ({ name, content: readFileSync(join(folder, name)) }));
  const head = {
    loader: place.loader,
    // What libc.so.6 prints when it is run, in Debian's with the package's version.
    from: /GNU C Library [^\n]*/.exec(files[1]!.content.toString("latin1"))?.[0] ?? "unknown",
    files: files.map(({ name, content }) => ({
      name,
      size: content.length,
      sha256: createHash("sha256").update(content).digest("hex"),
    })),
  };
  const content = Buffer.concat([
    Buffer.from(`${JSON.stringify(head)}\n`),
    ...files.map((file) => file.content),
  ]);
  return { content, from: head.from };
}
