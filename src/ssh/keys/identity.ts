/** Keys of a user: in the agent, and in files. */
import { existsSync, readFileSync } from "node:fs";
import ssh2 from "ssh2";
import type { Settings } from "../config/settings.ts";
import { keyType } from "../known/file.ts";
import { type AgentKey, agentKeys, agentSign } from "./agent.ts";
import { unlock } from "./locked.ts";

type Hash = "sha256" | "sha512";

/** A key that can be offered. */
export interface Identity {
  /** Where it is, for people. */
  name: string;
  key: ssh2.ParsedKey;
  sign(data: Buffer, hash: Hash | undefined): Promise<Buffer>;
}

/** What people are asked for, and what is not counted as time of the connection. */
export interface Unlocking {
  /** Undefined: nobody answers. */
  passphrase(prompt: string): Promise<Uint8Array | undefined>;
  /** While an agent signs, which may wait for a touch or a click, or people answer. `notice` is said after a moment. */
  waiting<T>(work: Promise<T>, notice?: string): Promise<T>;
  signal: AbortSignal;
}

/** As ssh: after three wrong ones the key is left alone. */
const tries = 3;

export class Identities {
  /** Keys that are there and that ssh2 cannot use, with the reason. */
  readonly beyond: string[] = [];
  /** Why keys that a user may count on were not offered. */
  readonly notes: string[] = [];

  constructor(
    private readonly settings: Settings,
    private readonly unlocking: Unlocking,
  ) {}

  /** In the order of ssh: keys of the agent that files name, its other ones, and keys in files. One by one, as each may need an answer. */
  async *offer(): AsyncGenerator<Identity> {
    const files = this.files();
    const agent = await this.agent();
    const named = agent.filter(({ blob }) => files.some((file) => file.blob?.equals(blob)));
    const others = this.settings.identitiesOnly ? [] : agent.filter((key) => !named.includes(key));
    for (const { blob, comment } of [...named, ...others]) {
      const key = parsePublic(blob);
      if (key) yield this.byAgent(key, comment);
      else this.beyond.push(`${comment || "a key"} of the agent is a ${keyType(blob)}`);
    }
    for (const file of files) {
      if (file.blob && named.some(({ blob }) => blob.equals(file.blob!))) continue;
      const identity = await this.byFile(file);
      if (identity) yield identity;
    }
  }

  private async agent(): Promise<AgentKey[]> {
    const path = this.settings.agent;
    if (path === undefined) return [];
    try {
      return await this.unlocking.waiting(
        agentKeys(path, AbortSignal.any([this.unlocking.signal, AbortSignal.timeout(120_000)])),
        "waiting for the SSH agent to show its keys",
      );
    } catch (error) {
      this.notes.push(`the agent at ${path} cannot be asked: ${(error as Error).message}`);
      return [];
    }
  }

  private byAgent(key: ssh2.ParsedKey, name: string): Identity {
    const path = this.settings.agent!;
    return {
      name: name || key.type,
      key,
      sign: (data, hash) =>
        this.unlocking.waiting(
          agentSign(path, key, data, hash),
          `waiting for the SSH agent to sign with ${name || key.type}: it may want a touch of your key, or your consent`,
        ),
    };
  }

  private files(): { path: string; bytes: Buffer; blob?: Buffer }[] {
    return this.settings.identityFiles.flatMap((path) => {
      let bytes: Buffer;
      try {
        bytes = readFileSync(path);
      } catch (error) {
        if ((error as { code?: string }).code !== "ENOENT")
          this.notes.push(`${path} cannot be read: ${(error as Error).message}`);
        // Keys of which only the public half lies here are in the agent.
        const blob = publicLine(`${path}.pub`);
        return blob ? [{ path: `${path}.pub`, bytes: Buffer.alloc(0), blob }] : [];
      }
      if (existsSync(`${path}-cert.pub`)) this.beyond.push(`${path} has a certificate`);
      return [{ path, bytes, blob: publicOf(bytes) ?? publicLine(`${path}.pub`) }];
    });
  }

  private async byFile({
    path,
    bytes,
    blob,
  }: {
    path: string;
    bytes: Buffer;
    blob?: Buffer;
  }): Promise<Identity | undefined> {
    if (!bytes.includes("PRIVATE KEY")) return;
    if (blob && keyType(blob).startsWith("sk-")) {
      this.beyond.push(`${path} is a ${keyType(blob)}`);
      return;
    }
    const open = parse(bytes);
    if (!(open instanceof Error))
      return { name: path, key: open, sign: async (data, hash) => signature(open.sign(data, hash)) };
    if (!/encrypted/i.test(open.message)) {
      this.beyond.push(`${path} is in a format of its own (${open.message})`);
      return;
    }
    // Old formats do not show the public half while they are locked.
    const known = blob ?? (await this.unlocked(path, bytes, undefined));
    const key = known && parsePublic(known);
    if (!key) {
      if (known) this.notes.push(`${path} is of a kind that cannot be used: ${keyType(known)}`);
      return;
    }
    return {
      name: path,
      key,
      sign: async (data, hash) => {
        const signed = await this.unlocked(path, bytes, { data, hash });
        if (!signed) throw new Error(`${path} stays locked`);
        return signed;
      },
    };
  }

  private async unlocked(
    path: string,
    bytes: Buffer,
    sign: { data: Buffer; hash?: Hash } | undefined,
  ): Promise<Buffer | undefined> {
    for (let left = tries; left > 0; left--) {
      const passphrase = await this.unlocking.passphrase(`Enter passphrase for key '${path}': `);
      if (passphrase === undefined) {
        this.notes.push(`${path} needs its passphrase, and nobody gave it`);
        return;
      }
      try {
        return await unlock(bytes, passphrase, sign, this.unlocking.signal);
      } catch (error) {
        const { message } = error as Error;
        if (left === 1 || !/passphrase|decrypt/i.test(message)) {
          this.notes.push(`${path} cannot be opened: ${message}`);
          return;
        }
      } finally {
        passphrase.fill(0);
      }
    }
  }
}

function parse(bytes: Buffer): ssh2.ParsedKey | Error {
  const key = ssh2.utils.parseKey(bytes) as ssh2.ParsedKey | ssh2.ParsedKey[] | Error;
  return Array.isArray(key) ? (key[0] ?? new Error("there is no key in it")) : key;
}

function parsePublic(blob: Buffer): ssh2.ParsedKey | undefined {
  const type = keyType(blob);
  // ssh2 takes some for what they are not.
  if (type.includes("-cert-") || type.startsWith("sk-")) return;
  const key = ssh2.utils.parseKey(`${type} ${blob.toString("base64")}`);
  return key instanceof Error ? undefined : key;
}

function signature(made: Buffer | Error): Buffer {
  if (made instanceof Error) throw made;
  return made;
}

/** The public half in a key file, which stands there in the open: of OpenSSH's own format, or a file that has nothing else. */
function publicOf(bytes: Buffer): Buffer | undefined {
  const text = bytes.toString("latin1");
  const [, body] = /-----BEGIN OPENSSH PRIVATE KEY-----([^-]*)-----END/.exec(text) ?? [];
  if (body === undefined) return lineOf(text);
  const raw = Buffer.from(body, "base64");
  const magic = "openssh-key-v1\0";
  if (raw.toString("latin1", 0, magic.length) !== magic) return;
  try {
    let at = magic.length;
    // Cipher, derivation of its key, options of that; the number of keys; the public half.
    for (let skipped = 0; skipped < 3; skipped++) at += 4 + raw.readUInt32BE(at);
    at += 4;
    const length = raw.readUInt32BE(at);
    return raw.subarray(at + 4, at + 4 + length);
  } catch {
    return; // cut off
  }
}

function publicLine(path: string): Buffer | undefined {
  try {
    return lineOf(readFileSync(path, "latin1"));
  } catch {
    return;
  }
}

function lineOf(text: string): Buffer | undefined {
  const [type, key] = text.split(/\s+/);
  const blob = Buffer.from(key ?? "", "base64");
  return type && blob.length > 4 && keyType(blob) === type ? Buffer.from(blob) : undefined;
}
