/** Files of keys that are known, sshd(8) "SSH_KNOWN_HOSTS FILE FORMAT". */
import { createHash, createHmac, randomBytes, timingSafeEqual } from "node:crypto";
import { appendFileSync, mkdirSync, readFileSync } from "node:fs";
import { dirname } from "node:path";
import { matchesList } from "../config/pattern.ts";
import { sshFault } from "../fault.ts";

export interface KnownKey {
  file: string;
  /** From 1. */
  line: number;
  marker?: "@revoked" | "@cert-authority";
  /** `ssh-ed25519` and so on. */
  type: string;
  blob: Buffer;
}

/** The name that a host has in these files: the port is part of it unless it is 22. */
export function knownName(host: string, port: number): string {
  const name = host.toLowerCase();
  return port === 22 ? name : `[${name}]:${port}`;
}

/** `SHA256:…`, as `ssh-keygen -l` prints it. */
export function fingerprint(blob: Uint8Array): string {
  return `SHA256:${createHash("sha256").update(blob).digest("base64").replace(/=+$/, "")}`;
}

/** Type of a key in SSH's own format, its first string (RFC 4253, 6.6). */
export function keyType(blob: Buffer): string {
  return blob.length < 4 ? "" : blob.toString("latin1", 4, 4 + blob.readUInt32BE(0));
}

/** The keys of a host, in the order of the files. Lines that make no sense are passed over, as ssh does. @throws Fault `ssh.config` */
export function findKeys(files: string[], name: string): KnownKey[] {
  return files.flatMap((file) => {
    let text: string;
    try {
      text = readFileSync(file, "utf8");
    } catch (error) {
      if ((error as { code?: string }).code === "ENOENT") return [];
      throw sshFault("ssh.config", `${file} cannot be read: ${(error as Error).message}`);
    }
    return text.split("\n").flatMap((line, index) => parseLine(line, name, file, index + 1) ?? []);
  });
}

function parseLine(text: string, name: string, file: string, line: number): KnownKey | undefined {
  if (text.startsWith("#")) return;
  const fields = text.trim().split(/\s+/);
  const marker = fields[0]?.startsWith("@") ? fields.shift() : undefined;
  const [names, type, key] = fields;
  if (key === undefined || !isOf(names!, name)) return;
  if (marker !== undefined && marker !== "@revoked" && marker !== "@cert-authority") return;
  return { file, line, marker, type: type!, blob: Buffer.from(key, "base64") };
}

function isOf(names: string, name: string): boolean {
  if (!names.startsWith("|1|")) return matchesList(names.split(","), name);
  const [, , salt, hash] = names.split("|");
  const expected = Buffer.from(hash ?? "", "base64");
  const found = hashName(Buffer.from(salt ?? "", "base64"), name);
  return found.length === expected.length && timingSafeEqual(found, expected);
}

function hashName(salt: Buffer, name: string): Buffer {
  return createHmac("sha1", salt).update(name).digest();
}

/**
 * Adds a line. One write to a file that is open for appending: other programs that add theirs at the same time lose nothing, which they
 * would if the file were replaced.
 * @throws Fault `ssh.config`
 */
export function addKey(file: string, name: string, blob: Buffer, hashed: boolean): void {
  const salt = randomBytes(20);
  const names = hashed ? `|1|${salt.toString("base64")}|${hashName(salt, name).toString("base64")}` : name;
  try {
    mkdirSync(dirname(file), { recursive: true, mode: 0o700 });
    const line = `${names} ${keyType(blob)} ${blob.toString("base64")}\n`;
    appendFileSync(file, endsInLine(file) ? line : `\n${line}`, { mode: 0o600 });
  } catch (error) {
    throw sshFault(
      "ssh.config",
      `the key of ${name} cannot be added to ${file}: ${(error as Error).message}`,
    );
  }
}

function endsInLine(file: string): boolean {
  try {
    const text = readFileSync(file);
    return text.length === 0 || text.at(-1) === 0x0a;
  } catch {
    return true; // not there yet
  }
}
