/**
 * Takes the block markers out of a chat as it streams: lines that begin with `[[[`. Everything else passes at once, half lines too, so
 * that an answer can be watched word by word.
 */
export class MarkerFilter {
  /** How many of the brackets that begin a marker the current line has shown so far, or what has been decided about it. */
  #line: 0 | 1 | 2 | "text" | "marker" = 0;
  /** The marker so far, without its brackets. */
  #marker = "";

  #hidden = false;

  /**
   * @param style what a terminal is sent in place of a marker, so that blocks can be told apart without one
   * @param hide asked once for each marker: whether to leave out what follows it
   */
  constructor(
    readonly style?: (type: string) => string,
    private readonly hide?: (type: string) => boolean,
  ) {}

  /** What of `bytes` is to be shown. A beginning that may still turn out to be a marker is held back. */
  pass(bytes: Uint8Array): Uint8Array {
    const shown: Uint8Array[] = [];
    const show = (text: Uint8Array) => {
      if (!this.#hidden) shown.push(text);
    };
    let from = 0;
    for (let at = 0; at < bytes.length; at++) {
      const byte = bytes[at]!;
      if (typeof this.#line === "number") {
        if (byte === bracket) {
          this.#line = this.#line === 2 ? "marker" : ((this.#line + 1) as 1 | 2);
          from = at + 1;
          continue;
        }
        if (this.#line > 0) show(new Uint8Array(this.#line).fill(bracket));
        this.#line = "text";
      } else if (this.#line === "marker") {
        from = at + 1;
        if (byte === newline) shown.push(this.#begin());
        else if (this.#marker.length < typeLimit) this.#marker += String.fromCharCode(byte);
      }
      if (byte !== newline) continue;
      show(bytes.subarray(from, at + 1));
      from = at + 1;
      this.#line = 0;
    }
    show(bytes.subarray(from));
    return shown.length === 1 ? shown[0]! : Buffer.concat(shown);
  }

  #begin(): Uint8Array {
    const type = /^\w*/.exec(this.#marker)![0];
    this.#marker = "";
    this.#hidden = this.hide?.(type) ?? false;
    return Buffer.from(this.style?.(type) ?? "");
  }
}

/** What a person wrote stands out, what is not the answer steps back. Ends the style of the block before. */
export function terminalStyle(type: string): string {
  return `\x1b[0m${styles[type] ?? ""}`;
}

const styles: Record<string, string> = {
  user: "\x1b[1m",
  reasoning: "\x1b[2m",
  call: "\x1b[2m",
  tool: "\x1b[2m",
  info: "\x1b[2m",
  retry: "\x1b[33m",
  error: "\x1b[31m",
};

const bracket = 0x5b;
const newline = 0x0a;
/** No type of block is longer. */
const typeLimit = 16;
