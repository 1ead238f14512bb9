/**
 * What no grant on a folder above reaches: Landlock only adds rights and cannot take one away from a part of a folder, so a grant that
 * would cover such a place is given to the other entries of the folder instead (see grants.ts).
 */
import { existsSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import { ownProgram } from "../exec/own.ts";
import type { SandboxGround } from "./ground.ts";
import { realpathOfPart } from "./paths.ts";

/** Rights as bits. */
export const R = 1;
export const X = 2;
export const W = 4;

/** As configs and policies name them. */
export const bits = { ro: R, rox: R | X, rw: R | W, rwx: R | W | X } as const;

/** The least that has all of these rights: writing and executing go with reading, since there is no name for one without the other. */
export function nameOf(rights: number): keyof typeof bits {
  if (rights & W) return rights & X ? "rwx" : "rw";
  return rights & X ? "rox" : "ro";
}

export interface Place {
  path: string;
  /** The rights that do not reach it. */
  without: number;
  /** No grant gets there. Otherwise one that names it, or something in it, does. */
  firm: boolean;
  /** Covered by a mount: what lies around it can be granted as a whole. */
  covered?: boolean;
}

export interface Places {
  all: Place[];
  /** Folders inside of firm places that can be granted all the same. */
  open: string[];
}

/** Below the home folder: keys and logins. */
const secrets = [
  ".ssh .gnupg .pki .password-store .netrc .pgpass .my.cnf .git-credentials .npmrc .pypirc .vault-token .aws .azure .kube .docker",
  ".config/gcloud .config/gh .config/glab-cli .config/hub .config/op .config/rclone .config/sops .config/1Password .config/Bitwarden",
  ".config/google-chrome .config/chromium .config/BraveSoftware .config/microsoft-edge .mozilla .thunderbird .electrum .bitcoin",
  ".local/share/keyrings .local/share/kwalletd .cargo/credentials .cargo/credentials.toml .m2/settings-security.xml",
];

/** Below the home folder: what shells, sessions and everyday programs run or obey, and what lies on the PATH. */
const startup = [
  ".bashrc .bash_profile .bash_login .bash_logout .bash_aliases .profile .inputrc .zshrc .zshenv .zprofile .zlogin .zlogout .kshrc .mkshrc",
  ".cshrc .tcshrc .login .logout .oh-my-zsh .xprofile .xinitrc .xsession .xsessionrc .xserverrc .Xresources .pam_environment .tmux.conf",
  ".config/fish .config/zsh .config/nushell .config/autostart .config/systemd .config/environment.d .config/plasma-workspace",
  ".config/tmux .config/i3 .config/sway .config/hypr .config/pulse .config/direnv .local/share/systemd .local/share/applications",
  ".local/share/dbus-1 .local/share/plasma .local/share/gnome-shell .local/bin bin .gitconfig .config/git .config/nvim .config/Code .vim",
  ".vimrc .exrc .emacs .emacs.d .config/emacs .gdbinit .config/gdb .lldbinit .pythonrc .pystartup .irbrc .Rprofile .vscode",
  ".cargo/bin .cargo/env .cargo/config .cargo/config.toml go/bin .bun/bin .deno/bin .volta/bin .dotnet/tools .composer/vendor/bin",
  ".config/pip .config/npm .config/go .config/cargo .config/uv .config/mise .mavenrc .m2/settings.xml .gradle/init.d .gradle/gradle.properties",
];

/** Everything that is protected on this host, under the name it is known by and the one its links lead to. */
export function placesOf(ground: SandboxGround): Places {
  const { home } = ground.paths;
  const below = (lists: string[]) => lists.flatMap((list) => list.split(" ")).map((path) => join(home, path));
  const all = [
    ...firm(ground),
    ...below(secrets).map((path) => ({ path, without: R | W | X, firm: false })),
    ...below(startup).map((path) => ({ path, without: W, firm: false })),
    ...toolchainBins(ground).map((path) => ({ path, without: W, firm: false })),
  ].flatMap((place) => [place, { ...place, path: realpathOfPart(place.path) }]);
  const unique = new Map(all.map((place) => [`${place.path}\0${place.without}\0${place.firm}`, place]));
  return { all: [...unique.values()], open: both(ground.paths.memory) };
}

/** What is ollie's own. */
function firm({ paths, environment, sockets, covers }: SandboxGround): Place[] {
  const all = R | W | X;
  const programs = dirname(ownProgram());
  const names = ["olliesrv", "ollie-9p", "o"];
  const unseen = [paths.state, paths.envFile, ...sockets.flatMap(ownFolder)];
  const caches = cachesOf({ paths, environment });
  const unchanged = [
    paths.config,
    ...paths.agents,
    ...paths.prompts,
    ...paths.tools,
    ...paths.skills,
    ownProgram(),
    ...[programs, join(paths.home, ".local/bin")].flatMap((folder) =>
      names.map((name) => join(folder, name)),
    ),
  ];
  return [
    ...unseen.map((path) => ({ path, without: all, firm: true })),
    ...caches.map((path) => ({ path, without: all, firm: true, covered: covers && existsSync(path) })),
    ...unchanged.map((path) => ({ path, without: W, firm: true })),
  ];
}

/** Ollie's own among the caches of all programs. */
export function cachesOf({ paths, environment }: Pick<SandboxGround, "paths" | "environment">): string[] {
  const { XDG_CACHE_HOME } = environment;
  return [join(paths.home, ".cache"), ...(XDG_CACHE_HOME?.startsWith("/") ? [XDG_CACHE_HOME] : [])].map(
    (folder) => join(folder, "ollie"),
  );
}

/** A socket, and the folder around it where that has nothing else in it. */
function ownFolder(socket: string): string[] {
  const folder = dirname(socket);
  return /^ollie(-remote)?(-\d+)?$/.test(basename(folder)) ? [folder, socket] : [socket];
}

/** Of a server that listens at `socket`: what its calls are started by. */
export function launchFolder(socket: string): string {
  return `${socket}.launch`;
}

/** Folders on the PATH that lie where caches do. */
function toolchainBins({ environment }: SandboxGround): string[] {
  const { CARGO_HOME, GOPATH, GOBIN } = environment;
  return [
    ...(CARGO_HOME ? ["bin", "env", "config", "config.toml"].map((name) => join(CARGO_HOME, name)) : []),
    ...(GOPATH ?? "").split(":").flatMap((folder) => (folder ? [join(folder, "bin")] : [])),
    ...(GOBIN ? [GOBIN] : []),
  ].filter((path) => path.startsWith("/"));
}

function both(path: string): string[] {
  return [...new Set([path, realpathOfPart(path)])];
}
