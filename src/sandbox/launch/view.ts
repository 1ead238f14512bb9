/** What a program's own view of the file system consists of: which places are covered, and what is seen in them all the same. */
import { lstatSync, readdirSync, readFileSync, realpathSync, statSync } from "node:fs";
import { join } from "node:path";
import { within } from "../paths.ts";
import type { Policy } from "../policy.ts";

export interface View {
  policy: Policy;
  cwd: string;
  /** A folder private to the session, below the state folder; becomes /tmp where nothing of the policy lies in the real one. */
  privateTmp: string;
  /** The user's runtime folder, full of sockets. */
  runtime?: string;
  /** The user's home folder, links resolved. */
  home?: string;
  /** Sockets that stay reachable: the tool's own address. */
  sockets: readonly string[];
}

/** `cover`: an empty folder in its place; `show`: as it is, not to be written; `write`: as it is. */
export interface Layer {
  kind: "cover" | "show" | "write";
  path: string;
  /** In a covered folder, this one: nothing is there that could be mounted on. */
  cover?: string;
}

export interface Layout {
  /** Outer ones before inner ones. */
  layers: Layer[];
  ownTmp: boolean;
  /** Sockets of programs outside that would be seen, and that nobody has granted. */
  strangers: string[];
}

export function layoutOf({ policy, cwd, runtime, home, sockets }: View): Layout {
  const { filesystem, hidden, network } = policy;
  const ownTmp = hasOwnTmp({ policy, cwd, sockets });
  const inOwnTmp = (path: string) => ownTmp && within(path, "/tmp");
  // Devices are written to whether or not the mount they lie in may be.
  const writable = topmost([...filesystem.rw, ...filesystem.rwx]).filter(isStorage);
  const reachable = [...sockets, ...network.unix].map(realSocket).filter((path) => path !== undefined);
  const services = [...servedFolders(policy, runtime, home), ...(ownTmp ? [] : sharedTmp(policy))].filter(
    (place) => !writable.some((path) => within(place, path)),
  );
  const covered = [...services, ...hidden.filter((place) => !writable.includes(place))].filter(
    (place) => isDirectory(place) && !inOwnTmp(place),
  );
  // Whether or not it may be read, a program stands in its working folder.
  const shown = [...filesystem.list, ...filesystem.ro, ...filesystem.rox, ...reachable, cwd];
  const layers = stacked([
    ...covered.map((path): Layer => ({ kind: "cover", path })),
    ...writable.map((path): Layer => ({ kind: "write", path })),
    ...shown.map((path): Layer => ({ kind: "show", path })),
  ]);
  const seen = (path: string) => {
    const kind = around(path, layers)?.kind;
    return kind === undefined || kind === "show";
  };
  const granted = (path: string) => reachable.includes(path) || inOwnTmp(path);
  const strangers = listening().filter((path) => seen(path) && !granted(path));
  return { layers, ownTmp, strangers };
}

/** Folders of which a program sees others than the host's. */
export function replacedFolders(view: View): string[] {
  const { layers, ownTmp } = layoutOf(view);
  const covered = layers.filter(({ kind }) => kind === "cover").map(({ path }) => path);
  return ownTmp ? [...covered, "/tmp"] : covered;
}

/** In order, and without those that change nothing: what is covered already, and what is seen in any case. */
function stacked(layers: readonly Layer[]): Layer[] {
  const order = [...layers].sort((a, b) => a.path.length - b.path.length);
  const kept: Layer[] = [];
  for (const layer of order) {
    if (kept.some(({ path }) => path === layer.path)) continue;
    const outer = around(layer.path, kept);
    const isCovered = outer?.kind === "cover";
    if (layer.kind === "cover" ? isCovered : layer.kind === "show" && !isCovered) continue;
    kept.push(isCovered ? { ...layer, cover: outer.path } : layer);
  }
  return kept;
}

/** The innermost layer in which a path lies. */
function around(path: string, layers: readonly Layer[]): Layer | undefined {
  return layers.findLast((layer) => within(path, layer.path));
}

/**
 * Whether /tmp is the session's own. Not where something lies in the real one that the program is to see: a path beside it would then
 * seem to be there and be another.
 */
export function hasOwnTmp({ policy, cwd, sockets }: Pick<View, "policy" | "cwd" | "sockets">): boolean {
  const { filesystem, network } = policy;
  const granted = [...Object.values(filesystem).flat(), ...network.unix, ...sockets, cwd];
  return !granted.some((path) => within(path, "/tmp"));
}

/** Where POSIX shared memory and semaphores are files: `shm_overview(7)`. */
export const sharedMemory = "/dev/shm";

/** Whether it is the call's own. Not where something in the real one is granted by its name, nor where it is not granted at all. */
export function hasOwnMemory({ policy, cwd, sockets }: Pick<View, "policy" | "cwd" | "sockets">): boolean {
  const { filesystem, network } = policy;
  const granted = [...Object.values(filesystem).flat(), ...network.unix, ...sockets, cwd];
  return filesystem.rw.includes(sharedMemory) && !granted.some((path) => path.startsWith(`${sharedMemory}/`));
}

/**
 * Folders in which the services of the system and of the user's desktop listen; at home connections of ssh that are shared, gpg-agent,
 * virtual machines with Docker. Those that listen by now could be covered one by one, but not those that a long call may wait for.
 */
function servedFolders(
  { filesystem }: Policy,
  runtime: string | undefined,
  home: string | undefined,
): string[] {
  // A user without a home of their own may have one of the system's folders for it, which everybody may see.
  const common = [...filesystem.ro, ...filesystem.rox].some((path) => home && within(home, path));
  return ["/run", runtime, common ? undefined : home].flatMap((path) =>
    path === undefined || path === "/" ? [] : path,
  );
}

/**
 * What to cover of a /tmp that is not the session's own: all but what the policy lets be seen, so that sockets which come later stay
 * out of reach; of one that may be read as a whole, the folders in which tmux, ssh-agent and X listen.
 */
function sharedTmp({ filesystem }: Policy): string[] {
  if (![...filesystem.ro, ...filesystem.rox].some((path) => within("/tmp", path))) return ["/tmp"];
  return list("/tmp")
    .filter((name) => /^(?:tmux-|ssh-|\.X11-unix$|\.ICE-unix$)/.test(name))
    .map((name) => join("/tmp", name));
}

/** Paths of sockets that somebody has bound, links resolved. `proc_net_unix(5)`. */
function listening(): string[] {
  const lines = read("/proc/net/unix").split("\n").slice(1);
  const names = new Set(lines.map((line) => line.split(" ").slice(7).join(" ").trimStart()));
  const paths = [...names].filter((name) => name.startsWith("/")).map(realSocket);
  return [...new Set(paths)].filter((path) => path !== undefined);
}

/** Without those that lie in another one. */
function topmost(paths: readonly string[]): string[] {
  const unique = [...new Set(paths)];
  return unique.filter((path) => !unique.some((other) => other !== path && within(path, other)));
}

export function isDirectory(path: string): boolean {
  return statSync(path, { throwIfNoEntry: false })?.isDirectory() ?? false;
}

/** A file or folder, not a device. */
function isStorage(path: string): boolean {
  const stat = statSync(path, { throwIfNoEntry: false });
  return stat !== undefined && (stat.isDirectory() || stat.isFile());
}

function realSocket(path: string): string | undefined {
  try {
    const real = realpathSync(path);
    return lstatSync(real).isSocket() ? real : undefined;
  } catch {
    return undefined;
  }
}

/** Paths of the links in a folder; none of one that cannot be read. */
export function linksIn(folder: string): string[] {
  try {
    const entries = readdirSync(folder, { withFileTypes: true });
    return entries.filter((entry) => entry.isSymbolicLink()).map(({ name }) => join(folder, name));
  } catch {
    return [];
  }
}

/** Names in a folder; none of one that cannot be read. */
function list(folder: string): string[] {
  try {
    return readdirSync(folder);
  } catch {
    return [];
  }
}

function read(path: string): string {
  try {
    return readFileSync(path, "utf8");
  } catch {
    return "";
  }
}
