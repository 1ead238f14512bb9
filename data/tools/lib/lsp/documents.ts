/** Keeps a language server's view of the files at what is on disk: others change them between the calls. */
import { readFileSync, type Stats, statSync } from "node:fs";
import { fileURLToPath, pathToFileURL } from "node:url";
import { show } from "../paths.ts";
import { walk } from "../walk.ts";

/** Documents that are open at a time; the one that was not asked for the longest is closed. */
const mostOpen = 100;
/** Files of a project that are watched, and milliseconds that looking for them may take; of larger ones only open documents are. */
const mostWatched = 20_000;
const longestLook = 2000;
/** Bytes; servers do not take more kindly. */
const largest = 8 * 1024 * 1024;

export interface Document {
  path: string;
  uri: string;
  version: number;
  text: string;
  stamp: string;
  /** `Documents.changes` and `Diagnostics.order` when this version was sent. */
  sent: { changes: number; order: number };
  /** `Documents.changes` when the server's diagnostics were last known to be complete. */
  diagnosed?: number;
}

/** What a server is told. */
export interface Listener {
  opened(document: Document): void;
  /** Also where only the version is new: it is to look at the file again. */
  changed(document: Document): void;
  closed(document: Document): void;
  /** Files on disk, open or not: 1 created, 2 changed, 3 deleted. */
  files(changes: { uri: string; type: 1 | 2 | 3 }[]): void;
}

export class Documents {
  /** Counts the times that anything was found changed. */
  changes = 0;
  private readonly open = new Map<string, Document>();
  /** The project's files and how they were last. */
  private watched?: Map<string, string>;
  private tooLarge = false;

  constructor(
    private readonly root: string,
    private readonly listener: Listener,
    private readonly isOurs: (path: string) => boolean,
  ) {}

  /** Tells the server of everything that has changed on disk. */
  refresh(): void {
    this.watch();
    for (const document of [...this.open.values()]) this.reread(document);
  }

  /** The file, open and as it is on disk. @throws Error if it is no text file that can be read */
  require(path: string): Document {
    const text = contentOf(path);
    const known = this.open.get(path);
    if (known) return this.update(known, text);
    const uri = pathToFileURL(path).href;
    const sent = { changes: 0, order: 0 };
    const document = { path, uri, version: 1, text, stamp: stampOf(path), sent };
    this.open.set(path, document);
    this.listener.opened(document);
    for (const old of this.open.values()) {
      if (this.open.size <= mostOpen) break;
      this.close(old);
    }
    return document;
  }

  /** Has the server look at a document again although it is the same. */
  touch(document: Document): void {
    document.version++;
    this.listener.changed(document);
  }

  private update(document: Document, text: string): Document {
    // Last in the order of the map: asked for most recently.
    this.open.delete(document.path);
    this.open.set(document.path, document);
    document.stamp = stampOf(document.path);
    if (document.text === text) return document;
    this.change(document, text);
    return document;
  }

  private reread(document: Document): void {
    const stamp = stampOf(document.path);
    if (stamp === document.stamp) return;
    try {
      const text = contentOf(document.path);
      document.stamp = stamp;
      if (text !== document.text) this.change(document, text);
    } catch {
      this.changes++;
      this.close(document); // gone, or no text any more
    }
  }

  private change(document: Document, text: string): void {
    this.changes++;
    document.text = text;
    document.version++;
    this.listener.changed(document);
  }

  private close(document: Document): void {
    this.open.delete(document.path);
    this.listener.closed(document);
  }

  private watch(): void {
    if (this.tooLarge) return;
    const before = this.watched;
    const now = this.look();
    this.watched = now;
    this.tooLarge = now === undefined;
    if (!before || !now) return;
    const changes: { uri: string; type: 1 | 2 | 3 }[] = [];
    const note = (path: string, type: 1 | 2 | 3) => changes.push({ uri: pathToFileURL(path).href, type });
    for (const [path, stamp] of now) if (before.get(path) !== stamp) note(path, before.has(path) ? 2 : 1);
    for (const path of before.keys()) if (!now.has(path)) note(path, 3);
    if (changes.length === 0) return;
    this.changes++;
    this.listener.files(changes);
  }

  /** Undefined: there are too many. */
  private look(): Map<string, string> | undefined {
    const end = Date.now() + longestLook;
    const found = new Map<string, string>();
    for (const path of walk(this.root)) {
      if (found.size > mostWatched || Date.now() > end) return undefined;
      if (this.isOurs(path)) found.set(path, stampOf(path));
    }
    return found;
  }
}

function contentOf(path: string): string {
  const stat = statSync(path, { throwIfNoEntry: false });
  if (!stat) throw new Error(`${show(path)} does not exist`);
  if (!stat.isFile()) throw new Error(`${show(path)} is not a file`);
  if (stat.size > largest)
    throw new Error(`${show(path)} is too long for a language server (${stat.size} bytes)`);
  const bytes = readFileSync(path);
  if (bytes.subarray(0, 8192).includes(0)) throw new Error(`${show(path)} is a binary file`);
  return bytes.toString("utf8").replace(/^\uFEFF/, "");
}

function stampOf(path: string): string {
  const stat: Stats | undefined = statSync(path, { throwIfNoEntry: false });
  return stat ? `${stat.ino} ${stat.size} ${stat.mtimeMs}` : "";
}

/** Undefined for what is no file, such as a class inside of an archive. */
export function pathOf(uri: string): string | undefined {
  try {
    return fileURLToPath(uri);
  } catch {
    return undefined;
  }
}
