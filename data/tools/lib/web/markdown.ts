/** From HTML to text that reads like Markdown: headings, paragraphs, lists, quotes, code, tables, and links with whole addresses. */
import { Blocks, type Gap } from "./blocks.ts";
import { Inline } from "./inline.ts";
import { Table } from "./table.ts";
import { type Token, tokens } from "./tokens.ts";

export interface Page {
  title: string;
  text: string;
}

/** Characters that a part of a page must have to stand for the whole. */
const enough = 200;

/** What nobody reads: programs, forms, pictures made of lines. */
const unreadable = words(
  "script style template svg iframe object canvas audio video select button textarea datalist noembed noframes map",
);
/** What leads around a site. */
const navigation = words("nav footer");
const voids = words("area base br col embed hr img input link meta param source track wbr");
/** Their end tags may be missing, so nobody could tell where a hidden one ends. */
const openEnded = words("p li dt dd td th tr thead tbody tfoot option html head body");
const gapBefore = new Map<string, Gap>([
  ...[...words("p section article main figure dl details fieldset form hgroup aside header footer nav")].map(
    (name): [string, Gap] => [name, "blank"],
  ),
  ...[...words("div address figcaption summary center caption legend body dt")].map((name): [string, Gap] => [
    name,
    "line",
  ]),
]);

/**
 * The main part of a page where it has one, else all but the navigation, else all.
 * @param base the page's address, for its links
 */
export function toMarkdown(html: string, base: string): Page {
  const attempts = [
    { onlyMain: true, without: navigation },
    { onlyMain: false, without: navigation },
    { onlyMain: false, without: new Set<string>() },
  ];
  let page: Page = { title: "", text: "" };
  for (const { onlyMain, without } of attempts) {
    const converter = new Converter(base, onlyMain, without);
    for (const token of tokens(html)) converter.take(token);
    page = converter.page();
    if (page.text.replace(/\s/g, "").length >= enough) return page;
  }
  return page;
}

class Converter {
  readonly #blocks = new Blocks();
  readonly #inline: Inline;
  readonly #lists: { ordered: boolean; next: number; begun: boolean }[] = [];
  /** Only the outermost has rows; `nested` counts the others. */
  #table: { table: Table; inCell: boolean; nested: number } | undefined;
  #pre: { pieces: string[]; language: string } | undefined;
  #heading = 0;
  #title = "";
  #inTitle = false;
  /** An element that is left out, and how many of its name are open in it. */
  #skipped: { name: string; depth: number } | undefined;
  /** The main part, likewise. */
  #main: { name: string; depth: number } | undefined;

  constructor(
    base: string,
    readonly onlyMain: boolean,
    readonly without: ReadonlySet<string>,
  ) {
    this.#inline = new Inline(base);
  }

  page(): Page {
    this.#endTable();
    if (this.#pre) this.#endPre();
    this.#flush();
    return { title: this.#title.replace(/\s+/g, " ").trim(), text: this.#blocks.toString() };
  }

  take(token: Token): void {
    if (token.kind === "text") this.#text(token.text);
    else if (this.#skipped) this.#skip(this.#skipped, token);
    else if (token.kind === "open") this.#open(token.name, token.attributes);
    else this.#close(token.name);
  }

  #skip(skipped: { name: string; depth: number }, token: Exclude<Token, { kind: "text" }>): void {
    if (token.name !== skipped.name) return;
    skipped.depth += token.kind === "open" ? 1 : -1;
    if (skipped.depth === 0) this.#skipped = undefined;
  }

  get #silent(): boolean {
    return this.#skipped !== undefined || (this.onlyMain && !this.#main);
  }

  #text(text: string): void {
    if (this.#inTitle) this.#title += text;
    else if (this.#silent) return;
    else if (this.#pre) this.#pre.pieces.push(text);
    else this.#inline.text(text);
  }

  #open(name: string, attributes: Map<string, string>): void {
    if (name === "base" && attributes.has("href")) this.#inline.rebase(attributes.get("href")!);
    if (name === "title") this.#inTitle = this.#title === "";
    if (voids.has(name)) {
      if (!this.#silent) this.#void(name, attributes);
      return;
    }
    if (unreadable.has(name) || this.without.has(name) || isHidden(name, attributes)) {
      this.#skipped = { name, depth: 1 };
      return;
    }
    if (this.#main?.name === name) this.#main.depth++;
    else if (!this.#main && (name === "main" || attributes.get("role") === "main"))
      this.#main = { name, depth: 1 };
    if (!this.#silent) this.#openVisible(name, attributes);
  }

  #void(name: string, attributes: Map<string, string>): void {
    if (name === "br") {
      if (this.#pre) this.#pre.pieces.push("\n");
      else this.#inline.lineBreak();
    } else if (name === "img") this.#inline.image(attributes.get("alt") ?? "", attributes.get("src") ?? "");
    else if (name === "hr" && !this.#table?.inCell) {
      this.#flush("blank");
      this.#blocks.add(["---"]);
      this.#blocks.want("blank");
    }
  }

  #openVisible(name: string, attributes: Map<string, string>): void {
    if (this.#pre) {
      if (name === "code" && !this.#pre.language) this.#pre.language = languageOf(attributes);
      // Highlighters make each line an element.
      const last = this.#pre.pieces.at(-1);
      if (/^(?:div|p|li|tr)$/.test(name) && last && !last.endsWith("\n")) this.#pre.pieces.push("\n");
      return;
    }
    if (name === "a") this.#inline.openLink(attributes.get("href") ?? "");
    else if (/^(?:code|kbd|samp|tt)$/.test(name)) this.#inline.openCode();
    else if (/^(?:table|tr|td|th)$/.test(name)) this.#openTablePart(name);
    else if (this.#table?.inCell) this.#openInCell(name);
    else if (name === "pre") {
      this.#flush("blank");
      this.#pre = { pieces: [], language: languageOf(attributes) };
    } else if (/^h[1-6]$/.test(name)) {
      this.#flush("blank");
      this.#heading = Number(name[1]);
    } else if (name === "ul" || name === "ol") {
      this.#flush(this.#lists.length === 0 ? "blank" : "line");
      this.#lists.push({
        ordered: name === "ol",
        next: Number(attributes.get("start") ?? 1) || 1,
        begun: false,
      });
    } else if (name === "li") this.#openItem();
    else if (name === "blockquote") {
      this.#flush("blank");
      this.#blocks.open("quote", "> ", "> ");
    } else if (name === "dd") {
      this.#flush();
      this.#blocks.close("definition");
      this.#blocks.open("definition", "  ", "  ");
    } else {
      const gap = gapBefore.get(name);
      if (gap) this.#flush(gap);
      if (name === "dt") this.#blocks.close("definition");
    }
  }

  #close(name: string): void {
    if (name === "title") this.#inTitle = false;
    const silent = this.#silent;
    if (!silent) this.#closeVisible(name);
    if (this.#main?.name === name && --this.#main.depth === 0) {
      if (!silent) this.#flush("blank");
      this.#main = undefined;
    }
  }

  #closeVisible(name: string): void {
    if (this.#pre) {
      if (name === "pre") this.#endPre();
      return;
    }
    if (name === "a" || /^(?:code|kbd|samp|tt)$/.test(name))
      this.#inline.close(name === "a" ? "link" : "code");
    else if (name === "table") this.#closeTable();
    else if (/^(?:tr|td|th)$/.test(name)) this.#closeTablePart(name);
    else if (this.#table?.inCell) this.#openInCell(name);
    else if (/^h[1-6]$/.test(name)) {
      this.#flush();
      this.#blocks.want("blank");
    } else if (name === "ul" || name === "ol") this.#closeList();
    else if (name === "li") {
      this.#flush();
      if (this.#itemIsOpen) this.#blocks.close("item");
    } else if (name === "blockquote") {
      this.#flush();
      this.#blocks.close("quote");
      this.#blocks.want("blank");
    } else if (name === "dd" || name === "dl") {
      this.#flush();
      this.#blocks.close("definition");
      if (name === "dl") this.#blocks.want("blank");
    } else {
      const gap = gapBefore.get(name);
      if (gap) {
        this.#flush();
        this.#blocks.want(gap);
      }
    }
  }

  /** Whether the innermost list has an item that is not closed yet. */
  get #itemIsOpen(): boolean {
    return this.#lists.length > 0 && this.#blocks.depth("item") >= this.#lists.length;
  }

  #openItem(): void {
    if (this.#lists.length === 0) this.#lists.push({ ordered: false, next: 1, begun: false });
    const list = this.#lists.at(-1)!;
    this.#flush();
    if (this.#itemIsOpen) this.#blocks.close("item");
    if (list.begun || this.#lists.length > 1) this.#blocks.join();
    list.begun = true;
    const mark = list.ordered ? `${list.next}. ` : "- ";
    list.next++;
    this.#blocks.open("item", mark, " ".repeat(mark.length));
  }

  #closeList(): void {
    this.#flush();
    if (this.#itemIsOpen) this.#blocks.close("item");
    this.#lists.pop();
    if (this.#lists.length === 0) this.#blocks.want("blank");
  }

  /** Cells are one line each: what would be a block of its own is set off by a blank. */
  #openInCell(name: string): void {
    if (gapBefore.has(name) || /^(?:pre|h[1-6]|ul|ol|li|blockquote|dd)$/.test(name)) this.#inline.text(" ");
  }

  #openTablePart(name: string): void {
    const open = this.#table;
    if (name === "table") {
      if (open?.inCell) open.nested++;
      else {
        this.#endTable();
        this.#flush("blank");
        this.#table = { table: new Table(), inCell: false, nested: 0 };
      }
    } else if (!open || open.nested > 0) this.#inline.text(" ");
    else {
      this.#endCell();
      // A caption, or text where none should be.
      this.#flush();
      if (name === "tr") open.table.openRow();
      else open.inCell = true;
    }
  }

  #closeTablePart(name: string): void {
    if (!this.#table || this.#table.nested > 0) {
      this.#inline.text(" ");
      return;
    }
    this.#endCell();
    if (name === "tr") this.#table.table.closeRow();
  }

  #closeTable(): void {
    if (this.#table && this.#table.nested > 0) this.#table.nested--;
    else this.#endTable();
  }

  #endCell(): void {
    if (!this.#table?.inCell) return;
    this.#table.table.addCell(this.#inline.take());
    this.#table.inCell = false;
  }

  #endTable(): void {
    if (!this.#table) return;
    this.#endCell();
    const lines = this.#table.table.lines();
    this.#table = undefined;
    if (lines.length === 0) return;
    this.#blocks.want("blank");
    this.#blocks.add(lines);
    this.#blocks.want("blank");
  }

  #endPre(): void {
    const { pieces, language } = this.#pre!;
    const text = pieces.join("");
    this.#pre = undefined;
    const lines = text
      .replace(/^\r?\n/, "")
      .trimEnd()
      .split(/\r?\n/);
    if (lines.join("").trim() === "") return;
    const longest = Math.max(2, ...(text.match(/`{3,}/g) ?? []).map((ticks) => ticks.length));
    const fence = "`".repeat(longest + 1);
    this.#blocks.add([fence + language, ...lines, fence]);
    this.#blocks.want("blank");
  }

  /** Writes down the text that has come, and wants a gap before what comes next. */
  #flush(gap: Gap = "line"): void {
    const heading = this.#heading;
    this.#heading = 0;
    const text = this.#inline.take();
    if (text !== "") {
      if (heading > 0) this.#blocks.add([`${"#".repeat(heading)} ${text.replace(/\s*\n\s*/g, " ")}`]);
      else this.#blocks.text(text);
    }
    this.#blocks.want(gap);
  }
}

function isHidden(name: string, attributes: Map<string, string>): boolean {
  if (openEnded.has(name)) return false;
  return (
    attributes.has("hidden") ||
    attributes.get("aria-hidden") === "true" ||
    /display\s*:\s*none|visibility\s*:\s*hidden/i.test(attributes.get("style") ?? "")
  );
}

/** As highlighters write it: `language-ts`, `lang-ts`, `highlight-source-ts`, `brush: ts`. */
function languageOf(attributes: Map<string, string>): string {
  const match = /(?:language-|lang-|highlight-source-|brush:\s*)([\w+#-]+)/.exec(
    attributes.get("class") ?? "",
  );
  return match?.[1] ?? "";
}

function words(text: string): ReadonlySet<string> {
  return new Set(text.split(" "));
}
