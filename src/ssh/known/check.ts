/** Whether a host is the one that it was: its key against the files of known ones. */
import type { Settings } from "../config/settings.ts";
import { Beyond, sshFault } from "../fault.ts";
import type { Askpass, SshTarget } from "../transport.ts";
import { addKey, findKeys, fingerprint, type KnownKey, keyType, knownName } from "./file.ts";

/** What signs with a key of a type; the first one is asked for first. */
const algorithms: Record<string, string[]> = {
  "ssh-ed25519": ["ssh-ed25519"],
  "ecdsa-sha2-nistp256": ["ecdsa-sha2-nistp256"],
  "ecdsa-sha2-nistp384": ["ecdsa-sha2-nistp384"],
  "ecdsa-sha2-nistp521": ["ecdsa-sha2-nistp521"],
  "ssh-rsa": ["rsa-sha2-512", "rsa-sha2-256"],
};

/** What to do with a key that is in no file: the profile and ssh's own configuration, the stricter word of the two. */
export function policyOf(target: SshTarget, strict: Settings["strict"]): SshTarget["newHostKey"] {
  if (target.newHostKey === "refuse" || strict === "yes") return "refuse";
  if (target.newHostKey === "accept" || strict === "accept-new") return "accept";
  return target.batch ? "refuse" : "ask";
}

export class HostKeys {
  private readonly name: string;
  private readonly keys: KnownKey[];
  private readonly plain: KnownKey[];

  /** @throws Fault `ssh.config` where a file cannot be read */
  constructor(
    private readonly settings: Settings,
    private readonly policy: SshTarget["newHostKey"],
    private readonly people: Askpass | undefined,
  ) {
    const { hostKeyAlias, host, port } = settings;
    this.name = hostKeyAlias?.toLowerCase() ?? knownName(host, port);
    const files = [...settings.userKnownHosts, ...settings.globalKnownHosts];
    this.keys = findKeys(files, this.name);
    // As ssh does: a key that was written down without the port is good for every port, but a change of it says nothing.
    this.plain = hostKeyAlias === undefined && port !== 22 ? findKeys(files, knownName(host, 22)) : [];
  }

  /** Algorithms to propose. A server shows one key only, so those whose keys are known come first: others would look like new ones. */
  get algorithms(): string[] {
    const all = Object.values(algorithms).flat();
    const known = this.usable([...this.keys, ...this.plain]).flatMap(({ type }) => algorithms[type] ?? []);
    return [...new Set([...known, ...all])];
  }

  /** @throws Fault `ssh.hostkey_changed`, `ssh.hostkey_unknown`; Beyond where an authority may have signed the key */
  async check(key: Buffer): Promise<void> {
    const revoked = [...this.keys, ...this.plain].find(
      ({ marker, blob }) => marker === "@revoked" && blob.equals(key),
    );
    if (revoked)
      throw sshFault(
        "ssh.hostkey_changed",
        `${this.name} shows a key that was revoked: ${fingerprint(key)} (${revoked.file}:${revoked.line})`,
      );
    const known = this.usable(this.keys);
    if ([...known, ...this.usable(this.plain)].some(({ blob }) => blob.equals(key))) return;
    const authority = this.keys.some(({ marker }) => marker === "@cert-authority");
    // A certificate may still make it a known one, whatever the policy says of new ones.
    if (authority && known.length === 0) throw new Beyond(this.unknown(key));
    // A key of another kind than the known ones is no new host: somebody in between could show one of a kind that was never seen.
    const old = known.find(({ type }) => type === keyType(key)) ?? known[0];
    if (old) throw changed(this.name, old, fingerprint(key), keyType(key));
    await this.accept(key);
  }

  private async accept(key: Buffer): Promise<void> {
    const [file] = this.settings.userKnownHosts;
    if (this.policy === "refuse") throw this.unknown(key);
    if (this.policy === "ask") {
      const question = `${this.name} is not known yet. Its ${kind(keyType(key))} key is ${fingerprint(key)}. Is that the host's key, and shall it be remembered?`;
      if (!(await this.people?.confirm(question, { target: this.settings.destination.host })))
        throw this.unknown(key);
    }
    if (file !== undefined && file !== "/dev/null")
      addKey(file, this.name, key, this.settings.hashKnownHosts);
    if (this.policy === "accept")
      this.people?.notice(`${this.name} is new: its key ${fingerprint(key)} is known from now on`);
  }

  private unknown(key: Buffer) {
    return unknown(this.name, this.settings, kind(keyType(key)), fingerprint(key));
  }

  private usable(keys: KnownKey[]): KnownKey[] {
    return keys.filter(({ marker }) => marker === undefined);
  }
}

/** `ED25519`, as ssh calls `ssh-ed25519`. */
function kind(type: string): string {
  return type
    .replace(/^ssh-/, "")
    .replace(/^ecdsa-.*/, "ecdsa")
    .toUpperCase();
}

export function unknown(name: string, settings: Settings, type: string, print: string) {
  const { destination, userKnownHosts } = settings;
  return sshFault("ssh.hostkey_unknown", `the key of ${name} is not known: ${type} ${print}`, {
    hint: `if ssh-keygen -lf /etc/ssh/ssh_host_${type.toLowerCase()}_key.pub says the same on that host, connect once with: ssh ${destination.host} (it writes ${userKnownHosts[0] ?? "known_hosts"})`,
  });
}

export function changed(name: string, old: KnownKey, print: string, type: string) {
  return sshFault(
    "ssh.hostkey_changed",
    `the key of ${name} is not the one that is known: ${kind(old.type)} ${fingerprint(old.blob)} at ${old.file}:${old.line}, but the host shows ${kind(type)} ${print}. The host was set up anew, or somebody is in between`,
    { hint: `once you know that the new one is right: ssh-keygen -f '${old.file}' -R '${name}'` },
  );
}
