/** A 9P2000 server for a tree of files, `file.ts`. Serves any number of byte streams; `listen.ts` brings it those of a unix socket. */
import type { Admission } from "./admission.ts";
import { NineError, phrase } from "./errors.ts";
import type { File, Maybe, Peer } from "./file.ts";
import { Connection } from "./server/connection.ts";
import type { Fid } from "./server/fid.ts";
import type { ByteStream } from "./stream.ts";

export type { Connection } from "./server/connection.ts";

/** The tree that a peer gets. What is thrown refuses the Tattach. */
export type Root = File | ((peer: Peer) => Maybe<File>);

export interface ServerOptions {
  limits?: Partial<Limits>;
  /**
   * Told of every request that the tree or the permission bits of a file refused, with the path that was walked to. A walk that fails
   * behind its first name is one too, although its reply is no Rerror.
   */
  onRefused?(peer: Peer, path: string, error: NineError): void;
  /** Told why a connection was closed: what came was not cut into frames of 9P. */
  onBadFrame?(peer: Peer, error: NineError): void;
}

/** Who has come to a listener. */
export interface Visitor {
  /** What the kernel says of it. */
  uid?: number;
  gid?: number;
  pid?: number;
  /** As in `Peer`. */
  as?: object;
  /** Asked at every Tattach; left out: whoever has connected may attach. */
  admit?: Admission;
}

/** What one connection may cost. */
export interface Limits {
  /** Largest message in bytes; a client may ask for less. */
  msize: number;
  fids: number;
  /** Requests without an answer. More are refused, except those that end others. */
  requests: number;
  /** Bytes of answers that the peer has not taken: from there on nothing more is read from it. */
  unsent: number;
  /** Bytes that running reads may return or that writes may leave waiting; beyond it reads become short and writes are refused. */
  running: number;
  /** Milliseconds that an interrupted request may take to end by itself. */
  grace: number;
}

const defaults: Limits = {
  msize: 1024 * 1024,
  fids: 65_536,
  requests: 16_384,
  unsent: 1024 * 1024,
  running: 32 * 1024 * 1024,
  grace: 500,
};

/** What has happened since the start, for metrics. */
export interface Counters {
  /** Open now. */
  connections: number;
  accepted: number;
  /** Requests by message type, such as `ops[Tread]`. */
  ops: Float64Array;
  errors: number;
  /** Bytes. */
  received: number;
  sent: number;
}

export class Server {
  readonly limits: Limits;
  readonly counters: Counters = {
    connections: 0,
    accepted: 0,
    ops: new Float64Array(128),
    errors: 0,
    received: 0,
    sent: 0,
  };
  /** qid.paths of files with DMEXCL that are open. */
  readonly exclusive = new Set<number>();
  readonly connections = new Set<Connection>();

  constructor(
    private readonly root: Root,
    readonly options: ServerOptions = {},
  ) {
    this.limits = { ...defaults, ...options.limits };
  }

  /** Serves a stream until one side closes it. */
  serve(stream: ByteStream, { admit, ...known }: Visitor = {}): Connection {
    const { counters } = this;
    const peer: Peer = { ...known, connection: ++counters.accepted, uname: "", aname: "" };
    const connection = new Connection(this, stream, peer, admit);
    this.connections.add(connection);
    counters.connections++;
    stream.attach(connection);
    return connection;
  }

  /** Ends all connections; settles when their files are closed. */
  async close(): Promise<void> {
    const all = [...this.connections];
    for (const connection of all) connection.close();
    await Promise.all(all.map((connection) => connection.ended()));
  }

  /** The tree for a Tattach. A server of one tree knows no other by name. */
  rootFor(peer: Peer): Maybe<File> {
    if (typeof this.root === "function") return this.root(peer);
    checkAname(peer.aname);
    return this.root;
  }

  /** Called by a connection that has ended. */
  forget(connection: Connection): void {
    if (this.connections.delete(connection)) this.counters.connections--;
  }

  releaseExclusive(fid: Fid): void {
    if (fid.exclusive === undefined) return;
    this.exclusive.delete(fid.exclusive);
    fid.exclusive = undefined;
  }
}

/** For a tree that is the only one of its server. */
export function checkAname(aname: string): void {
  if (aname === "" || aname === "/") return;
  throw new NineError(phrase.notExist, `no tree is named ${aname}, leave the aname empty`);
}
