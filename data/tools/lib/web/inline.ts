/** Running text as it comes: blanks collapsed, with links, code and pictures marked. */

interface Mark {
  kind: "link" | "code";
  /** Index of its first piece. */
  start: number;
  href: string;
}

export class Inline {
  /** Joined only when the text is complete: to look into a long text again at each piece would take the square of its length. */
  readonly #pieces: string[] = [];
  #afterBlank = true;
  readonly #marks: Mark[] = [];

  constructor(private base: string) {}

  /** The page itself has said where its relative addresses begin. */
  rebase(href: string): void {
    this.base = resolved(href, this.base) ?? this.base;
  }

  text(text: string): void {
    const plain = text.replace(/[\s\u00A0]+/g, " ");
    const piece = this.#afterBlank && plain.startsWith(" ") ? plain.slice(1) : plain;
    if (piece === "") return;
    this.#pieces.push(piece);
    this.#afterBlank = piece.endsWith(" ");
  }

  lineBreak(): void {
    this.#pieces.push("\n");
    this.#afterBlank = true;
  }

  image(alt: string, src: string): void {
    const words = alt.replace(/\s+/g, " ").trim();
    if (words === "") return;
    const address = /^data:/i.test(src) ? undefined : resolved(src, this.base);
    // In a link the words are enough.
    if (this.#marks.length > 0 || !address) this.text(words);
    else this.text(`![${words}](${address})`);
  }

  /** Anchors, and what only a browser can follow, stay plain text. */
  openLink(href: string): void {
    this.close("link");
    const address = /^\s*(?:#|javascript:|data:|$)/i.test(href)
      ? undefined
      : resolved(href.trim(), this.base);
    if (address) this.#marks.push({ kind: "link", start: this.#pieces.length, href: address });
  }

  openCode(): void {
    if (!this.#marks.some((mark) => mark.kind === "code"))
      this.#marks.push({ kind: "code", start: this.#pieces.length, href: "" });
  }

  close(kind: Mark["kind"]): void {
    const at = this.#marks.findLastIndex((mark) => mark.kind === kind);
    if (at < 0) return;
    for (const mark of this.#marks.splice(at).reverse()) this.#wrap(mark);
  }

  /** What has come so far, and a mark around it ends with it; one that has no text yet waits for the next. */
  take(): string {
    const waiting: Mark[] = [];
    for (const mark of this.#marks.splice(0).reverse())
      if (!this.#wrap(mark)) waiting.unshift({ ...mark, start: 0 });
    this.#marks.push(...waiting);
    this.#afterBlank = true;
    return this.#pieces
      .splice(0)
      .join("")
      .replace(/ ?\n ?/g, "\n")
      .replace(/\n{3,}/g, "\n\n")
      .trim();
  }

  #wrap({ kind, start, href }: Mark): boolean {
    const inside = this.#pieces.slice(start).join("");
    const words = inside.trim();
    if (words === "") return false;
    const before = inside.slice(0, inside.indexOf(words));
    const after = inside.slice(before.length + words.length);
    this.#pieces.length = start;
    this.#pieces.push(`${before}${kind === "code" ? code(words) : link(words, href)}${after}`);
    return true;
  }
}

function code(words: string): string {
  return words.includes("`") ? `\`\` ${words} \`\`` : `\`${words}\``;
}

function link(words: string, href: string): string {
  const label = words.replace(/\s*\n\s*/g, " ");
  return label === href || `${label}/` === href ? href : `[${label}](${href})`;
}

/** Parentheses would end a link too early. */
function resolved(href: string, base: string): string | undefined {
  return URL.parse(href, base)?.href.replaceAll("(", "%28").replaceAll(")", "%29");
}
