/** The tree and the beginning of the conversations that show what intro(5) asks of a server, and what clients in the field have been seen to need. */
import { DMAPPEND, DMDIR } from "../../src/ninep/file.ts";
import { ramfs } from "../../src/ninep/ramfs.ts";
import { converse } from "./trace.ts";
import { Slow } from "./trees.ts";
import { Wire } from "./wire.ts";

/** hello (5 bytes), dir/ with a, b, c; a log that only grows; modes of all kinds. */
export function tree() {
  const root = ramfs({ user: "owner" });
  root.add("hello", 0o644, "hello");
  const dir = root.add("dir", (DMDIR | 0o755) >>> 0);
  for (const name of ["a", "b", "c"]) dir.add(name, 0o644, name);
  root.add("log", (DMAPPEND | 0o644) >>> 0, "one\n");
  root.add("readonly", 0o444, "r");
  root.add("writeonly", 0o222, "w");
  root.add("closed", (DMDIR | 0o555) >>> 0).add("fixed", 0o644);
  return root;
}

/**
 * Converses on a fresh connection, after Tversion and a Tattach of fid 0 as glenda; once with a tree that answers at once and once with
 * one that does not. Returns the first of the two.
 */
export async function after(trace: string, msize = 8192): Promise<Wire> {
  const wire = await new Wire(tree()).attached(msize);
  await converse(wire, trace);
  await converse(await new Wire(new Slow(tree())).attached(msize), trace);
  return wire;
}

/** A frame with any type and body, tag 1. */
export function frame(type: number, ...body: Buffer[]): Buffer {
  const rest = Buffer.concat(body);
  const head = Buffer.from([0, 0, 0, 0, type, 1, 0]);
  head.writeUInt32LE(head.length + rest.length);
  return Buffer.concat([head, rest]);
}
