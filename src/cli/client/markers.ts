/**
 * Takes the block markers out of a chat as it streams: lines that begin with `[[[`. Everything else passes at once, half lines too, so
 * that an answer can be watched word by word.
 */
export class MarkerFilter {
  /** How many of the brackets that begin a marker the current line has shown so far, or what has been decided about it. */
  #line: 0 | 1 | 2 | "text" | "marker" = 0;

  /** What of `bytes` is to be shown. A beginning that may still turn out to be a marker is held back. */
  pass(bytes: Uint8Array): Uint8Array {
    // At most two brackets held back earlier come on top.
    const out = new Uint8Array(bytes.length + 2);
    let length = 0;
    for (const byte of bytes) {
      if (typeof this.#line === "number") {
        if (byte === bracket) {
          this.#line = this.#line === 2 ? "marker" : ((this.#line + 1) as 1 | 2);
          continue;
        }
        for (let held = this.#line; held > 0; held--) out[length++] = bracket;
        this.#line = "text";
      }
      if (this.#line === "text") out[length++] = byte;
      if (byte === newline) this.#line = 0;
    }
    return out.subarray(0, length);
  }
}

const bracket = 0x5b;
const newline = 0x0a;
