/** What the daemon of a session needs of the engine that runs its operations (../operations.ts). */
import type { z } from "zod";
import type { HostPolicy } from "../../policy/host-policy.ts";
import type { HostHello } from "../../protocol/hello.ts";
import type {
  OpOutput,
  OpReport,
  OpStart,
  opAck,
  opCancel,
  opFollow,
  opPiece,
  opRange,
  opWait,
  sudoAnswer,
} from "../../protocol/operation.ts";
import type { Attached, SessionSettings } from "../../protocol/session.ts";
import type { toolsList } from "../../protocol/tools.ts";

export interface OperationsGround {
  /** `ROOT/sessions/ID`; the journal is `journal.ndjson` in it, an operation's own things lie in `ops/OPID/`. */
  folder: string;
  sessionId: string;
  /** BASE: programs, tools and blobs lie below it. */
  base: string;
  root: string;
  /** The working folder, links resolved. */
  cwd: string;
  policy: HostPolicy;
  /** What grants are sealed with. */
  key: Uint8Array;
  settings(): SessionSettings;
  /** What no sandbox opens: the daemon's socket. */
  sockets: readonly string[];
  /** Tells whoever is attached; dropped where nobody is. */
  notify(method: "output", params: OpOutput): void;
  notify(method: "exit", params: OpReport): void;
  log(sentence: string): void;
}

export interface Operations {
  /** All that runs, and the newest of what has ended, oldest first, without `output`; `get` knows the others. */
  list(): OpReport[];
  /** @throws CodedFault `op.unknown` */
  get(opId: string): OpReport;
  /** Resolves when it is accepted, on disk, or known already. @throws `op.mismatch`, `policy.*`, `op.invalid`, `op.no_space` */
  start(request: OpStart): Promise<OpReport>;
  wait(request: z.infer<typeof opWait>, signal: AbortSignal): Promise<OpReport>;
  cancel(request: z.infer<typeof opCancel>): Promise<OpReport>;
  /** A range of what a stream has held. */
  output(request: z.infer<typeof opRange>): Promise<z.infer<typeof opPiece>>;
  follow(request: z.infer<typeof opFollow>): void;
  ack(request: z.infer<typeof opAck>): void;
  secret(opId: string, secret: Uint8Array): void;
  /** What sudo wants here for the operation of that id; `sudoCheck`: whether the secret that was given for it is right. */
  sudoProbe(opId: string): Promise<z.infer<typeof sudoAnswer>>;
  sudoCheck(opId: string): Promise<z.infer<typeof sudoAnswer>>;
  /** Nobody is attached any more: nothing is sent until somebody follows again. */
  detach(): void;
  /** How far programs are confined here. */
  readonly sandbox: HostHello["sandbox"];
  /** What the project's file asks for and the user has not approved. */
  readonly asks: Attached["asks"];
  /** The tools that the settings name, their variants weighed on this host. */
  tools(): z.infer<typeof toolsList>;
  /** What runs, detached operations among it. */
  readonly running: number;
  /** Ends all that runs and takes nothing more. */
  seal(): Promise<void>;
  close(): Promise<void>;
}
