/**
 * The programs for hosts that lie beside olliesrv; build.ts says which files those are. Of a release that is signed only what its manifest lists is
 * sent; else also what has been put there by hand.
 */
import { existsSync, readFileSync, realpathSync, statSync } from "node:fs";
import { dirname, join } from "node:path";
import { build, compiled } from "../../config/version.ts";
import { coded } from "../protocol/errors.ts";
import { type Described, isSigned, type Manifest, parseManifest } from "../protocol/manifest.ts";
import type { BootOptions } from "./bootstrap.ts";
import type { Kind } from "./command.ts";
import { elfHead } from "./elf.ts";
import { type LibcPack, readLibcPack } from "./libc.ts";
import { describe, Program } from "./program.ts";

/** One that can be sent. */
export interface Offer extends Pick<Kind, "machine" | "loader"> {
  /** `linux-x64`; of a program that the user has named: its path. */
  name: string;
  program: Program;
  pack?: LibcPack;
  /** What it must answer to `--ok`, or how that must begin. */
  answers: string;
  /** The text that the signature is for, and the signature; a trust anchor may want to see them. */
  signed?: { text: string; signature: Uint8Array };
}

const machines: Record<string, Pick<Kind, "machine" | "loader">> = {
  "linux-x64": { machine: "x86_64", loader: "/lib64/ld-linux-x86-64.so.2" },
  "linux-arm64": { machine: "aarch64", loader: "/lib/ld-linux-aarch64.so.1" },
  // Last: it needs libstdc++ on the host. Where there is a pack, the first runs everywhere.
  "linux-x64-musl": { machine: "x86_64", loader: "/lib/ld-musl-x86_64.so.1" },
};

/** Where olliesrv lies; run from its sources, where build.ts has put it. */
export function programsFolder(): string {
  return compiled ? dirname(realpathSync(process.execPath)) : join(import.meta.dir, "../../../dist");
}

/**
 * All that there are.
 * @param publisher whose signature counts; undefined = nobody's is asked for
 * @throws CodedFault "boot.signature", "boot.manifest", "boot.unsupported"
 */
export async function offers(
  { programs, localRunner, targetTriple }: Pick<BootOptions, "programs" | "localRunner" | "targetTriple">,
  publisher = build.publisher,
): Promise<Offer[]> {
  if (localRunner !== undefined) return [await named(localRunner, targetTriple)];
  const folder = programs ?? programsFolder();
  const listed = readManifest(folder, publisher);
  const found = await Promise.all(
    Object.keys(machines).map((target) => offer(folder, target, listed, publisher)),
  );
  const there = found.filter((each) => each !== undefined);
  if (there.length > 0) return there;
  throw coded("boot.unsupported", `no ollie-remote lies in ${folder}`, {
    hint: "it belongs beside olliesrv; for other kinds of hosts as ollie-remote-linux-arm64 and so on",
  });
}

interface Listed {
  manifest: Manifest;
  signed?: { text: string; signature: Uint8Array };
}

function readManifest(folder: string, publisher: string | undefined): Listed | undefined {
  const file = join(folder, "manifest.json");
  if (!existsSync(file)) {
    if (publisher === undefined) return undefined;
    throw coded("boot.signature", `${file} is missing`, {
      hint: "this olliesrv sends to hosts only what its publisher has signed: install the release as a whole",
    });
  }
  const text = readFileSync(file, "utf8");
  if (publisher === undefined) return { manifest: parseManifest(text) };
  const signature = existsSync(`${file}.sig`) ? readFileSync(`${file}.sig`) : new Uint8Array();
  if (!isSigned(text, signature, [publisher]))
    throw coded("boot.signature", `${file} has no valid signature of the publisher ${publisher}`, {
      hint: "install the release as a whole; programs and manifest belong together",
    });
  return { manifest: parseManifest(text), signed: { text, signature } };
}

async function offer(
  folder: string,
  target: string,
  listed: Listed | undefined,
  publisher: string | undefined,
): Promise<Offer | undefined> {
  const there = (name: string) => [join(folder, name)].filter((path) => existsSync(path))[0];
  const name = `ollie-remote-${target}`;
  const raw = there(name) ?? (target === build.target ? there("ollie-remote") : undefined);
  const entry = listed?.manifest.programs[target];
  const files = { raw, zstd: there(`${name}.zst`), gzip: there(`${name}.gz`) };
  if (entry ? !(raw ?? files.zstd ?? files.gzip) : !raw || publisher !== undefined) return undefined;
  const libc = there(`${name}.libc`);
  const mayPack = libc !== undefined && (entry ? entry.libc !== undefined : true);
  return {
    name: target,
    ...machines[target]!,
    program: new Program(files, entry ?? (await describedOnce(raw!))),
    pack: mayPack ? packOnce(libc, entry?.libc?.sha256) : undefined,
    // One that was dropped in may be of another version.
    answers: entry ? `ollie-remote ${listed!.manifest.version} ${target}` : "ollie-remote ",
    signed: entry && listed!.signed,
  };
}

/** A program that the user has named, whoever has made it. */
async function named(file: string, triple: string | undefined): Promise<Offer> {
  if (!existsSync(file))
    throw coded("boot.unsupported", `there is no ${file}, which local_runner_path names`);
  const head = elfHead(file);
  // "aarch64-unknown-linux-gnu"; some say "arm64-…".
  const machine = triple?.replace(/-.*/s, "").replace("arm64", "aarch64");
  if (machine !== undefined && machine !== head.machine)
    throw coded("boot.unsupported", `${file} is for ${head.machine}, but target_triple says ${triple}`);
  return {
    name: file,
    ...head,
    program: new Program({ raw: file }, await describedOnce(file)),
    answers: "ollie-remote ",
  };
}

/** Files are hashed once in this process, for each file as it is. */
const programsSeen = new Map<string, Promise<Described>>();
const packsSeen = new Map<string, LibcPack>();

function stateOf(file: string): string {
  const { ino, size, mtimeNs, ctimeNs } = statSync(file, { bigint: true });
  return [file, ino, size, mtimeNs, ctimeNs].join(" ");
}

function describedOnce(file: string): Promise<Described> {
  const state = stateOf(file);
  const seen = programsSeen.get(state) ?? describe(file);
  programsSeen.set(state, seen);
  // Not remembered: the file may be there at the next time.
  seen.catch(() => programsSeen.delete(state));
  return seen;
}

function packOnce(file: string, pinned: string | undefined): LibcPack {
  const state = `${stateOf(file)} ${pinned}`;
  const pack = packsSeen.get(state) ?? readLibcPack(file, pinned);
  packsSeen.set(state, pack);
  return pack;
}
