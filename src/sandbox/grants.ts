/** Rights on paths, added up, with protected places left out of every grant on a folder above them. */
import { lstatSync, readdirSync } from "node:fs";
import { dirname, join } from "node:path";
import { within } from "./paths.ts";
import { nameOf, type Place, type Places, R } from "./places.ts";
import type { Policy } from "./policy.ts";

/** Entries of a folder up to which each gets a grant of its own: a policy has to be handed to the kernel at every call. */
const crowd = 2000;

export class Grants {
  /** Folders with more entries than that, which got less than was asked for. */
  readonly crowded: string[] = [];
  readonly #rights = new Map<string, number>();
  readonly #listed = new Set<string>();

  /**
   * @param home folders that hold it are not made listable: a right to list holds for all below
   */
  constructor(
    readonly places: Places,
    readonly home: string,
  ) {}

  /** Without regard to places. */
  add(path: string, rights: number): void {
    if (rights !== 0) this.#rights.set(path, (this.#rights.get(path) ?? 0) | rights);
  }

  list(path: string): void {
    this.#listed.add(path);
  }

  /** What of `rights` a grant that names this path can give there, leaving alone what lies below. */
  reach(path: string, rights: number): number {
    if (this.places.open.some((open) => within(path, open))) return rights;
    return this.places.all
      .filter((place) => place.firm && within(path, place.path))
      .reduce((left, place) => left & ~place.without, rights);
  }

  /** A grant that names `path`, links resolved. */
  grant(path: string, rights: number): void {
    const left = this.places.all.filter((place) => !place.covered);
    this.#spread(path, this.reach(path, rights), left);
  }

  /** Gives what no place below loses to the whole, and the rest to each entry. A link among the entries belongs to where it leads. */
  #spread(path: string, rights: number, places: readonly Place[]): void {
    const below = places.filter((place) => place.path !== path && within(place.path, path));
    const lost = below.reduce((all, place) => all | (place.without & rights), 0);
    this.add(path, rights & ~lost);
    if (lost === 0) return;
    if (lost & R && (path === this.home || !within(this.home, path))) this.list(path);
    const names = entries(path);
    if (names.length > crowd) {
      this.crowded.push(path);
      return;
    }
    for (const name of names) {
      const child = join(path, name);
      const left = below
        .filter((place) => place.path === child)
        .reduce((all, place) => all & ~place.without, lost);
      if (left !== 0) this.#spread(child, left, below);
    }
  }

  /** All rights that hold at a path. */
  at(path: string): number {
    return this.#above(path) | (this.#rights.get(path) ?? 0);
  }

  /** Paths that are given this right. */
  paths(right: number): string[] {
    return [...this.#rights].filter(([, given]) => given & right).map(([path]) => path);
  }

  /** As a policy has them: what a folder above gives already is left out, the rest is sorted. */
  filesystem(): Policy["filesystem"] {
    const lists: Policy["filesystem"] = { list: [], ro: [], rox: [], rw: [], rwx: [] };
    for (const path of [...this.#rights.keys()].sort()) {
      const above = this.#above(path);
      const rights = this.#rights.get(path)! | above;
      if (rights !== above) lists[nameOf(rights)].push(path);
    }
    lists.list = [...this.#listed].filter((path) => (this.at(path) & R) === 0).sort();
    return lists;
  }

  #above(path: string): number {
    let rights = 0;
    for (let folder = path; folder !== "/"; ) {
      folder = dirname(folder);
      rights |= this.#rights.get(folder) ?? 0;
    }
    return rights;
  }
}

/** Entries of a folder that are no links; none of a file or of what cannot be read. */
function entries(path: string): string[] {
  try {
    return readdirSync(path).filter((name) => !lstatSync(join(path, name)).isSymbolicLink());
  } catch {
    return [];
  }
}
