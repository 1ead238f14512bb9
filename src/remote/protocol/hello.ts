/** The first message of either end. */
import { z } from "zod";
import { id } from "./values.ts";

export const hostSandbox = z.object({
  state: z.enum(["enforced", "partial", "off", "unknown"]),
  abi: z.int(),
  enforced: z.array(z.string()),
  missing: z.array(z.string()),
});

/** The bridge says it unasked, as soon as it runs. */
export const hostHello = z.object({
  proto: z.object({ min: z.int(), max: z.int() }),
  version: z.string(),
  /** SHA-256 of the program that speaks. */
  digest: z.string(),
  os: z.string(),
  arch: z.string(),
  libc: z.string(),
  kernel: z.string(),
  home: z.string(),
  user: z.string(),
  shell: z.string(),
  /** Folder that sessions and their journals lie below. */
  root: z.string(),
  caps: z.array(z.string()),
  limits: z.object({ maxFrame: z.int(), window: z.int() }),
  /** As the last daemon here has found out; `unknown` where none has run since the host was started. */
  sandbox: hostSandbox,
  /** Of the tools that are here already; empty = none. */
  tools: z.array(z.string()),
  /** Milliseconds since 1970, and the boot id: a clock that is wrong, a host that was restarted. */
  clock: z.number(),
  boot: z.string(),
  sessions: z.array(z.object({ sessionId: id, state: z.string() })),
  /** Operations outlive a logout of the user. */
  persist: z.boolean(),
});
export type HostHello = z.infer<typeof hostHello>;

export const clientHello = z.object({
  proto: z.int(),
  /** Which server this is: the same for all its connections, another for another's. */
  client: z.string().min(1).max(128),
  /** Without these the client cannot work; what is missing is the error `caps.missing`. */
  need: z.array(z.string()),
  want: z.array(z.string()).default([]),
});
export type ClientHello = z.infer<typeof clientHello>;

/** What a host of this version can. */
export const capabilities = [
  "session",
  "op",
  "op.detach",
  "op.elevate",
  "file",
  "tools",
  "blob",
  "execute",
] as const;
