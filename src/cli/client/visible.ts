import { toTerminal } from "../stdio.ts";

/**
 * Keeps a terminal from obeying what it is shown. A model's text, a file's content or a name may hold escape sequences, which could set
 * the title, write the clipboard or hide what stands before them: control characters are shown as `^[` and the like instead.
 */
export class Visible {
  /** The first byte of a two-byte character that may be a control of the upper set has come at the end of the last piece. */
  #pending = false;

  pass(bytes: Uint8Array): Uint8Array {
    if (!this.#pending && !bytes.some(suspicious)) return bytes;
    const shown: number[] = [];
    for (const byte of bytes) {
      if (this.#pending) {
        this.#pending = false;
        // U+0080 to U+009F: as good as ESC and the byte 64 lower.
        if (byte >= 0x80 && byte <= 0x9f) {
          shown.push(caret, open, byte - 0x40);
          continue;
        }
        shown.push(upper);
      }
      if (byte === upper) this.#pending = true;
      else if (isControl(byte)) shown.push(caret, byte ^ 0x40);
      else shown.push(byte);
    }
    return Uint8Array.from(shown);
  }
}

/** A whole text as stdout is to get it: harmless where that is a terminal. */
export function forOutput(text: string): string | Uint8Array {
  return toTerminal() ? new Visible().pass(Buffer.from(text)) : text;
}

/** All but tab and newline; DEL is one. */
function isControl(byte: number): boolean {
  return (byte < 0x20 && byte !== 0x09 && byte !== 0x0a) || byte === 0x7f;
}

function suspicious(byte: number): boolean {
  return byte === upper || isControl(byte);
}

const caret = 0x5e;
const open = 0x5b;
/** Begins the UTF-8 forms of U+0080 to U+00BF. */
const upper = 0xc2;
