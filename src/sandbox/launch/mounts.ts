/**
 * A program's own view of the file system, in a user and mount namespace: what Landlock cannot do at all (a chmod elsewhere) or not yet
 * (deny a socket by its path). `user_namespaces(7)`, `mount_namespaces(7)`.
 */
import { existsSync, mkdirSync, readlinkSync } from "node:fs";
import { dirname } from "node:path";
import { within } from "../paths.ts";
import { asMeant } from "./landlock.ts";
import { attempt, must, type Step } from "./step.ts";
import { AT_FDCWD, ENOENT, O_CLOEXEC, O_CREAT, O_WRONLY } from "./syscalls.ts";
import { hasOwnMemory, isDirectory, type Layer, layoutOf, linksIn, sharedMemory, type View } from "./view.ts";

const CLONE_NEWNS = 0x00020000;
const CLONE_NEWIPC = 0x08000000;
const CLONE_NEWUSER = 0x10000000;
const MS_NOSUID = 2;
const MS_NODEV = 4;
const MS_NOEXEC = 8;
const MS_BIND = 4096;
const MS_REC = 16384;
const MS_SLAVE = 1 << 19;
const OPEN_TREE_CLONE = 1;
const AT_RECURSIVE = 0x8000;
const AT_EMPTY_PATH = 0x1000;
const MOVE_MOUNT_F_EMPTY_PATH = 4;
const MOUNT_ATTR_RDONLY = 1n;

/** Shared memory and message queues are reached by number and not by a path. */
const own = CLONE_NEWNS | CLONE_NEWIPC;

/** Enters a mount and IPC namespace and, for whoever is not root, the user namespace that allows one to make them. */
export function namespaceSteps(root: boolean): Step[] {
  // Root needs no other user namespace, and could not take all its users along into one by itself.
  if (root) return [must("make namespaces", "unshare", own), slave];
  const uid = process.geteuid!();
  const gid = process.getegid!();
  return [
    must("make a user namespace", "unshare", CLONE_NEWUSER | own),
    ...writeFile("/proc/self/setgroups", "deny"),
    ...writeFile("/proc/self/uid_map", `${uid} ${uid} 1`),
    ...writeFile("/proc/self/gid_map", `${gid} ${gid} 1`),
    slave,
  ];
}

/** What is unmounted outside goes in here as well, or it would stay busy; what is mounted in here stays in here. */
const slave = must("detach its mounts", "mount", "none", "/", 0, MS_REC | MS_SLAVE, 0);

function writeFile(path: string, text: string): Step[] {
  return [
    must(`open ${path}`, "openat", AT_FDCWD, path, O_WRONLY, 0),
    must(`write ${path}`, "write", firstFree, text, text.length),
    must(`close ${path}`, "close", firstFree),
  ];
}

/** No descriptor above 2 is open before, and none after. */
const firstFree = 3;

/** Makes everything read-only but what the policy lets be written, and hides sockets. `namespaceSteps` come before. */
export function viewSteps(view: View): Step[] {
  const { policy, cwd, privateTmp } = view;
  const { layers, ownTmp, strangers } = layoutOf(view);
  const [writable, shown] = [pathsOf(layers, "write"), pathsOf(layers, "show")];
  if (ownTmp) mkdirSync(privateTmp, { recursive: true, mode: 0o700 });

  const trees = new Trees();
  return [
    ...writable.flatMap((path) => trees.take(path)),
    ...(ownTmp ? trees.take(privateTmp, "/tmp") : []),
    must("make everything read-only", "mount_setattr", AT_FDCWD, "/", AT_RECURSIVE, readOnly, 32),
    ...shown.flatMap((path) => trees.take(path)),
    ...(ownTmp ? [trees.put("/tmp")] : []),
    ...layers.flatMap(({ kind, path, cover }) =>
      kind === "cover"
        ? [mountEmpty(path), ...foldersAround(layers, path).flatMap((folder) => likeness(folder, path))]
        : [...(cover === undefined ? [] : trees.makePlace(path, cover)), trees.put(path)],
    ),
    ...pathsOf(layers, "cover").map((path) =>
      must(`make ${path} read-only`, "mount_setattr", AT_FDCWD, path, 0, readOnly, 32),
    ),
    ...(isDirectory(terminals) ? ownTerminals : []),
    ...(hasOwnMemory(view) ? [ownMemory] : []),
    ...pinned(policy.frozen, writable).flatMap((path) => [...trees.take(path), trees.put(path)]),
    ...policy.frozen.flatMap((path) => trees.freeze(path)),
    ...strangers.map(coverSocket),
    ...(process.geteuid!() === 0 ? ofRoot.filter((path) => existsSync(path)).map(coverFile) : []),
    must("return to the working folder", "chdir", cwd),
    must("close descriptors", "close_range", firstFree, 0xffffffff, 0),
  ];
}

function pathsOf(layers: readonly Layer[], wanted: Layer["kind"]): string[] {
  return layers.filter(({ kind }) => kind === wanted).map(({ path }) => path);
}

/** `struct mount_attr`: set, clear, propagation, user namespace. */
const readOnly = { fields: [MOUNT_ATTR_RDONLY, 0, 0, 0] };

/** Copies of mounts, taken while their paths lead to what is meant, and put in their places later. */
class Trees {
  readonly #taken = new Map<string, number>();
  #next = firstFree + 1;

  /** @param place where it is to be put, if not where it was */
  take(path: string, place = path): Step[] {
    this.#taken.set(place, this.#next++);
    const flags = OPEN_TREE_CLONE | AT_RECURSIVE | AT_EMPTY_PATH | O_CLOEXEC;
    return [
      must(`find ${path} as it was`, "openat2", AT_FDCWD, path, asMeant, 24),
      must(`take ${path} along`, "open_tree", firstFree, "", flags),
      must(`close ${path}`, "close", firstFree),
    ];
  }

  put(place: string): Step {
    return moveTo(this.#taken.get(place)!, place);
  }

  /** Mounts the path over itself, not to be written. Its name cannot be renamed or removed then either. */
  freeze(path: string): Step[] {
    const take = this.take(path);
    const tree = this.#taken.get(path)!;
    return [
      ...take,
      must(`freeze ${path}`, "mount_setattr", tree, "", AT_EMPTY_PATH | AT_RECURSIVE, readOnly, 32),
      moveTo(tree, path),
    ];
  }

  /** Makes what a mount at `path` needs below an empty `place`. */
  makePlace(path: string, place: string): Step[] {
    const folders: string[] = [];
    for (let folder = dirname(path); folder !== place; folder = dirname(folder)) folders.unshift(folder);
    const steps = folders.map((folder) => attempt(`make ${folder}`, "mkdirat", AT_FDCWD, folder, 0o755));
    if (isDirectory(path)) return [...steps, attempt(`make ${path}`, "mkdirat", AT_FDCWD, path, 0o755)];
    return [
      ...steps,
      must(`make ${path}`, "openat", AT_FDCWD, path, O_WRONLY | O_CREAT | O_CLOEXEC, 0o600),
      must(`close ${path}`, "close", firstFree),
    ];
  }
}

function moveTo(tree: number, place: string): Step {
  return must(`put ${place} in its place`, "move_mount", tree, "", AT_FDCWD, place, MOVE_MOUNT_F_EMPTY_PATH);
}

function mountEmpty(place: string): Step {
  return must(`cover ${place}`, "mount", "tmpfs", place, "tmpfs", MS_NOSUID | MS_NODEV, "mode=0755,size=1m");
}

/** Where terminals are files: who can open another one of the user's reads what is typed there, and writes what is read there. */
export const terminals = "/dev/pts";

const ownTerminals: Step[] = [
  must(
    "have terminals of its own",
    "mount",
    "devpts",
    terminals,
    "devpts",
    MS_NOSUID | MS_NOEXEC,
    "newinstance,ptmxmode=0666,mode=0600",
  ),
  attempt("make them by the usual name", "mount", `${terminals}/ptmx`, "/dev/ptmx", 0, MS_BIND, 0),
];

/** What other programs of the user share among each other, such as the content of windows, is in the host's. */
const ownMemory = must(
  "have shared memory of its own",
  "mount",
  "tmpfs",
  sharedMemory,
  "tmpfs",
  MS_NOSUID | MS_NODEV,
  "mode=1777",
);

/** A covered folder, and the folders in it that lead to what is shown there; outer ones first. */
function foldersAround(layers: readonly Layer[], place: string): string[] {
  const folders = new Set([place]);
  for (const { path, cover } of layers) {
    if (cover !== place) continue;
    for (let folder = dirname(path); folder !== place; folder = dirname(folder)) folders.add(folder);
  }
  return [...folders].sort((a, b) => a.length - b.length);
}

/** The folder with its links: by those of /run NixOS finds its programs, by those at home users find what they keep elsewhere. */
function likeness(folder: string, place: string): Step[] {
  return folder === place
    ? links(folder)
    : [attempt(`make ${folder}`, "mkdirat", AT_FDCWD, folder, 0o755), ...links(folder)];
}

/** They show nothing that was not shown before. */
function links(folder: string): Step[] {
  return linksIn(folder).flatMap((path) => {
    const target = linkTarget(path);
    return target === undefined ? [] : [attempt(`link ${path}`, "symlinkat", target, AT_FDCWD, path)];
  });
}

/** The folders between what is frozen and the writable folder around it: with a mount on them nobody can move them away. */
function pinned(frozen: readonly string[], writable: readonly string[]): string[] {
  const folders = new Set<string>();
  for (const path of frozen) {
    const around = writable.find((place) => path !== place && within(path, place));
    if (around === undefined) continue;
    for (let folder = dirname(path); folder !== around; folder = dirname(folder)) folders.add(folder);
  }
  // Outer ones first, or they would cover the inner ones.
  return [...folders].sort((a, b) => a.length - b.length);
}

/** Who connects finds that it is no socket. One that is gone by now needs no cover. */
function coverSocket(path: string): Step {
  const step = must(`cover the socket ${path}`, "mount", "/dev/null", path, 0, MS_BIND, 0);
  return { ...step, returns: { least: BigInt(-ENOENT), most: 0n } };
}

/**
 * Passwords and keys of the system. What `/etc` holds else is to be read by tools, and root's tools are no others to the kernel; to leave
 * these out of a grant on `/etc` would cost every call a rule for each of the other files.
 */
const ofRoot = [
  ...["/etc/shadow", "/etc/shadow-", "/etc/gshadow", "/etc/gshadow-", "/etc/krb5.keytab"],
  ...["ecdsa", "ed25519", "rsa"].map((kind) => `/etc/ssh/ssh_host_${kind}_key`),
];

/** Who reads it finds it empty. */
function coverFile(path: string): Step {
  return must(`cover ${path}`, "mount", "/dev/null", path, 0, MS_BIND, 0);
}

function linkTarget(path: string): string | undefined {
  try {
    return readlinkSync(path);
  } catch {
    return undefined;
  }
}
