/** What a confined program may do, with every template and link resolved on this host: what configs come to, and what launches enforce. */

export interface Policy {
  /** Absolute paths that exist, links resolved. A right on a folder holds for all below it. */
  filesystem: {
    /** Folders whose entries may be listed, and nothing more. */
    list: string[];
    /** Read. */
    ro: string[];
    /** Read and execute. */
    rox: string[];
    /** Read, write, create, rename, remove. */
    rw: string[];
    /** All of it. */
    rwx: string[];
  };
  network: {
    unrestricted: boolean;
    /** TCP ports; empty lists with `unrestricted` false = no network at all. */
    bind: number[];
    connect: number[];
    /** Sockets in the file system that may be reached though they lie outside of the writable folders. */
    unix: string[];
  };
  /** Names of the server's variables that a program gets; a name may end in `*`. */
  env: string[];
  /** Run all the same where the kernel cannot confine. */
  bestEffort: boolean;
  /** Inside of writable folders and yet not to be written, such as `.git/hooks`; all exist. */
  frozen: string[];
  /** Not to be seen at all, wherever they lie: ollie's own state, keys and sockets. */
  hidden: string[];
}

/** Whether an entry of `env` lets a variable through, or all that another entry does. */
export function letsThrough(entry: string, name: string): boolean {
  return entry === name || (entry.endsWith("*") && name.startsWith(entry.slice(0, -1)));
}
