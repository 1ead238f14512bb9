/** What is said on a channel: by whatever stands in the way, by the script or the trust anchor, and by ollie-remote. */
import type { SshChannel } from "../../ssh/transport.ts";
import type { BootOptions } from "./bootstrap.ts";
import type { Markers } from "./markers.ts";
import { brokenOff, notStarted, tooMuchNoise, withoutMarker } from "./outcome.ts";

export function serveOptions({ root, policy }: BootOptions): string[] {
  return [...(root ? ["--root", root] : []), ...(policy ? ["--policy", policy] : [])];
}

/** The words of the next marker. Rejects with a CodedFault of what it means where none comes any more. */
export function said(markers: Markers, channel: SshChannel): Promise<string[]> {
  const words = nextWords(markers, channel);
  // It may fail while something else is waited for.
  words.catch(() => {});
  return words;
}

async function nextWords(markers: Markers, channel: SshChannel): Promise<string[]> {
  let words: string[] | undefined;
  try {
    words = await markers.next();
  } catch (error) {
    if (error instanceof RangeError) throw tooMuchNoise(markers.noise);
    throw error;
  }
  if (words) return words;
  throw markers.spoke ? await brokenOff(channel) : await withoutMarker(channel, markers.noise);
}

/** The protocol; an error where the program ends before it has said a word. */
export async function* spoken(markers: Markers, channel: SshChannel): AsyncGenerator<Uint8Array> {
  let silent = true;
  for await (const bytes of markers.rest()) {
    silent = false;
    yield bytes;
  }
  if (silent) throw await notStarted(channel);
}
