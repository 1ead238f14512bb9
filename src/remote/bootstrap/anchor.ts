/** The same by a command that the operator of the host has installed; its grammar is in bootstrap.ts. Each of its three steps is a channel of its own. */
import { randomBytes } from "node:crypto";
import type { SshChannel, SshConnection } from "../../ssh/transport.ts";
import { coded } from "../protocol/errors.ts";
import type { Booted, BootOptions } from "./bootstrap.ts";
import { quoted } from "./command.ts";
import { Markers } from "./markers.ts";
import { otherMachine, visible } from "./outcome.ts";
import { bestCodec, readMiss } from "./plan.ts";
import type { Offer } from "./programs.ts";
import { said, serveOptions, spoken } from "./talk.ts";
import { Patience, Upload } from "./upload.ts";

export async function bootByAnchor(
  connection: SshConnection,
  options: BootOptions,
  command: string,
  offered: readonly Offer[],
): Promise<Booted> {
  const anchor = new Anchor(connection, options, command);
  options.onProgress({ doing: "checking" });
  let offer = offered[0]!;
  let missed = await anchor.check(offer);
  const machine = missed?.find((word) => word.startsWith("arch="))?.slice("arch=".length);
  if (machine !== undefined && machine !== offer.machine) {
    const other = offered.find((each) => each.machine === machine);
    if (!other)
      throw otherMachine(
        ["Linux", machine],
        offered.map(({ name }) => name),
      );
    offer = other;
    missed = await anchor.check(offer);
  }
  const uploaded = missed ? await anchor.install(offer, missed) : 0;
  const { channel, markers } = await anchor.launch(offer);
  const digest = offer.program.described.sha256;
  return { channel, stdout: spoken(markers, channel), digest, hit: !missed, uploaded, notes: [] };
}

class Anchor {
  readonly #nonce = randomBytes(8).toString("hex");
  readonly #patience: Patience;

  constructor(
    private readonly connection: SshConnection,
    private readonly options: BootOptions,
    private readonly command: string,
  ) {
    this.#patience = new Patience(options.stall, options.signal, `starting ollie-remote by ${command}`);
  }

  /** @returns what it says of a miss */
  check(offer: Offer): Promise<string[] | undefined> {
    return this.#run("check", offer, [], async (channel, markers) => {
      const [kind, ...words] = await this.#said(channel, markers);
      if (kind === "hit" || kind === "miss") return kind === "hit" ? undefined : words;
      throw this.#refused(kind, words);
    });
  }

  /** @returns bytes that were sent */
  async install({ program, signed, ...offer }: Offer, missed: readonly string[]): Promise<number> {
    const codec = bestCodec(readMiss(missed).codecs);
    const { sizes, frame } = await program.load(codec);
    const proof = signed ? Buffer.concat([signed.signature, Buffer.from(signed.text)]) : Buffer.alloc(0);
    const length = sizes.reduce((sum, size) => sum + size, 0);
    const words = [codec, `${length}`, `${proof.length}`];
    return this.#run("install", { ...offer, program }, words, async (channel, markers) => {
      const upload = new Upload(channel, proof.length + length, this.#patience, this.options.onProgress);
      const answer = said(markers, channel);
      let wanted = await upload.send(proof, answer);
      for (let index = 0; wanted && index < sizes.length; index++)
        wanted = await upload.send(await frame(index), answer);
      if (wanted) channel.end();
      const [kind, ...rest] = await this.#patience.wait(answer, () => upload.look());
      if (kind !== "installed") throw this.#refused(kind, rest);
      return upload.sent;
    });
  }

  async launch(offer: Offer): Promise<{ channel: SshChannel; markers: Markers }> {
    const { channel, markers } = await this.#start("launch", offer, serveOptions(this.options));
    const [kind, ...words] = await this.#said(channel, markers);
    if (kind === "hit") return { channel, markers };
    channel.close();
    throw this.#refused(kind, words);
  }

  async #run<T>(
    step: string,
    offer: Offer,
    words: readonly string[],
    talk: (channel: SshChannel, markers: Markers) => Promise<T>,
  ): Promise<T> {
    const { channel, markers } = await this.#start(step, offer, words);
    try {
      return await talk(channel, markers);
    } finally {
      channel.close();
      await this.#patience.wait(channel.closed);
    }
  }

  async #start(step: string, { program }: Offer, words: readonly string[]) {
    const args = [step, program.described.sha256, this.#nonce, ...words].map(plainOrQuoted);
    // A forced command gets this as SSH_ORIGINAL_COMMAND and takes it apart at the spaces.
    const channel = await this.#patience.wait(this.connection.exec([this.command, ...args].join(" ")));
    return { channel, markers: new Markers(channel.stdout, this.#nonce) };
  }

  #said(channel: SshChannel, markers: Markers): Promise<string[]> {
    return this.#patience.wait(said(markers, channel));
  }

  #refused(kind: string | undefined, words: readonly string[]) {
    const [code, ...rest] = kind === "fail" ? words : [];
    const why = visible(rest.join(" ")) || `it said ${visible([kind, ...words].join(" "))}`;
    return coded(`boot.${/^[a-z_]+$/.test(code ?? "") ? code : "no_marker"}`, `${this.command}: ${why}`);
  }
}

function plainOrQuoted(word: string): string {
  return /^[\w@%+=:,./-]+$/.test(word) ? word : quoted(word);
}
