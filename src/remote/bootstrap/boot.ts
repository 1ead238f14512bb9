/**
 * From an SSH connection to a running ollie-remote. The script (bootstrap.sh) is asked for the programs that could be sent; it becomes the one
 * that is there, or says what it needs, and the same channel goes on to be the protocol: one round trip more when something has to be sent.
 */
import { randomBytes } from "node:crypto";
import type { CodedFault } from "../../fault.ts";
import type { SshChannel, SshConnection } from "../../ssh/transport.ts";
import { coded } from "../protocol/errors.ts";
import { bootByAnchor } from "./anchor.ts";
import type { Boot, Booted, BootOptions } from "./bootstrap.ts";
import { bootCommand, type Kind, places } from "./command.ts";
import { Markers } from "./markers.ts";
import { badAnswer, missingTools, nowhere, otherMachine, tellPlace } from "./outcome.ts";
import { plan, readMiss } from "./plan.ts";
import { type Offer, offers } from "./programs.ts";
import { said, serveOptions, spoken } from "./talk.ts";
import { Patience, Upload } from "./upload.ts";

/** Each candidate for the folder, and what may go wrong once with each of two ways of sending. */
const attempts = 10;

/** What the script could not do; the next attempt is told to mind it. */
interface Failed {
  words: string[];
  place?: string;
  uploaded: number;
}

export const boot: Boot = async (connection, options) => {
  const offered = await offers(options);
  if (options.bootstrapCommand !== undefined)
    return bootByAnchor(connection, options, options.bootstrapCommand, offered);
  const tries = new Tries(offered);
  let uploaded = 0;
  for (let count = 0; count < attempts; count++) {
    const outcome = await attempt(connection, options, offered, tries);
    if (!("words" in outcome))
      return {
        ...outcome,
        uploaded: uploaded + outcome.uploaded,
        notes: [...tries.notes(), ...outcome.notes],
      };
    uploaded += outcome.uploaded;
    tries.after(outcome);
  }
  throw coded("boot.short", "ollie-remote could not be installed on the host", { retry: true });
};

/** What has been learned of the host: what is not to be tried again. */
class Tries {
  readonly mind = new Set<string>();
  readonly #places = new Map<string, string>();
  readonly #seen = new Set<string>();

  constructor(private readonly offered: readonly Offer[]) {}

  notes(): string[] {
    return [...this.#places].map(([place, reason]) => tellPlace(place, reason));
  }

  /** @throws CodedFault where another attempt would end in the same way */
  after({ words: [kind, ...rest], place }: Failed) {
    if (kind === "arch")
      throw otherMachine(
        rest,
        this.offered.map(({ name }) => name),
      );
    if (kind === "no_loader") throw badAnswer("127", `there is no ${rest[0]}`);
    if (kind === "tools_missing") throw missingTools(rest);
    if (kind === "nowhere") {
      for (const word of rest) {
        const [name, reason] = word.split("=");
        this.#places.set(name!, reason!);
      }
      throw nowhere(this.#places);
    }
    if (kind === "place") return this.#avoid(rest[0]!, rest[1]!);
    if (kind === "selftest") return this.#afterSelftest(rest[0]!, rest.slice(1).join(" "), place);
    // What an earlier attempt has left there may be at fault.
    this.mind.add("fresh");
    if (kind === "hash")
      return this.#once("hash", coded("boot.hash", "what arrived on the host is not what was sent"));
    const short = `the host did not take all of it: ${rest.join(" ")}`;
    return this.#once("short", coded("boot.short", short, { retry: true }));
  }

  #afterSelftest(status: string, said: string, place: string | undefined) {
    if (status === "126" && /ermission denied/.test(said) && place !== undefined) {
      this.#avoid(place, "noexec");
      return;
    }
    const fault = badAnswer(status, said);
    // A loader that is there, and too old: with the pack it works.
    if (fault.code !== "boot.no_loader" || !this.offered.some(({ pack }) => pack)) throw fault;
    this.mind.add("pack");
    this.#once("pack", fault);
  }

  #avoid(place: string, reason: string) {
    this.mind.add(place);
    this.#places.set(place, reason);
  }

  #once(what: string, fault: CodedFault) {
    if (this.#seen.has(what)) throw fault;
    this.#seen.add(what);
  }
}

async function attempt(
  connection: SshConnection,
  options: BootOptions,
  offered: readonly Offer[],
  tries: Tries,
): Promise<Booted | Failed> {
  const nonce = randomBytes(8).toString("hex");
  const patience = new Patience(options.stall, options.signal, "starting ollie-remote");
  options.onProgress({ doing: "checking" });
  const command = bootCommand({
    nonce,
    kinds: offered.map(kindOf),
    mind: [...tries.mind],
    serve: serveOptions(options),
  });
  const channel = await patience.wait(connection.exec(command));
  try {
    const outcome = await converse(channel, new Markers(channel.stdout, nonce), patience, options, offered);
    if ("words" in outcome) {
      channel.close();
      // Where a connection may have one channel only, the next has to wait for the end of this one.
      await patience.wait(channel.closed);
    }
    return outcome;
  } catch (error) {
    channel.close();
    throw error;
  }
}

function kindOf({ machine, loader, program, pack }: Offer): Kind {
  const { sha256: digest, size } = program.described;
  const files = pack && { digest: pack.digest, files: pack.files.map(({ name }) => name) };
  return { machine, loader, digest, size, pack: files };
}

/** One run of the script, to the end or to the protocol. */
async function converse(
  channel: SshChannel,
  markers: Markers,
  patience: Patience,
  options: BootOptions,
  offered: readonly Offer[],
): Promise<Booted | Failed> {
  let place: string | undefined;
  let upload: Upload | undefined;
  for (let next = said(markers, channel); ; ) {
    const [kind, ...words] = await patience.wait(next, () => upload?.look());
    const uploaded = upload?.sent ?? 0;
    if (kind === "fail") return { words, place, uploaded };
    if (kind === "hit" || kind === "installed")
      return {
        channel,
        stdout: spoken(markers, channel),
        digest: words[0]!,
        hit: kind === "hit",
        uploaded,
        notes: kind === "hit" ? [] : installNotes(words),
      };
    next = said(markers, channel);
    if (kind !== "miss") continue;
    const miss = readMiss(words);
    place = miss.place;
    const offer = offered.find(({ program }) => program.described.sha256 === miss.hash);
    if (!offer) throw coded("boot.no_marker", "the host asks for a program that it was not offered");
    const { lines, library, length, pieces } = await plan(offer, miss);
    upload = new Upload(channel, length + (library?.length ?? 0), patience, options.onProgress);
    await patience.wait(channel.write(Buffer.from(lines)));
    if (library) {
      if (!(await upload.send(library, next))) continue;
      const answer = await patience.wait(next, () => upload?.look());
      next = answer[0] === "next" ? said(markers, channel) : Promise.resolve(answer);
      if (answer[0] !== "next") continue;
    }
    for await (const piece of pieces()) if (!(await upload.send(piece, next))) break;
  }
}

/** Words of an `installed` line: digest, place, tool, and why other places were passed over. */
function installNotes([, place, tool, ...passed]: string[]): string[] {
  const notes = passed.map((word) => tellPlace(...(word.split("=") as [string, string])));
  if (place !== "home") notes.push(`ollie-remote was installed in ${places[place!]}`);
  if (tool === "cksum") notes.push("weak_verify: the host has no SHA-256; cksum protects from damage only");
  return notes;
}
