/** HTML as a row of tags and texts, in one pass and in time that grows with its length, whatever it is made of. */
import { decode } from "./entities.ts";

export type Token =
  | { kind: "open"; name: string; attributes: Map<string, string> }
  | { kind: "close"; name: string }
  /** With references decoded. */
  | { kind: "text"; text: string };

/** What is in these is text up to their own end tag. */
const rawText = new Set(["script", "style", "title", "textarea", "xmp", "iframe", "noembed", "noframes"]);

export function* tokens(html: string): Generator<Token> {
  let at = 0;
  while (at < html.length) {
    const tag = html.indexOf("<", at);
    if (tag < 0) break;
    const next = html[tag + 1] ?? "";
    const end = endOf(html, tag, next);
    if (end === undefined) {
      // No tag: the character itself.
      yield { kind: "text", text: decode(html.slice(at, tag + 1)) };
      at = tag + 1;
      continue;
    }
    if (tag > at) yield { kind: "text", text: decode(html.slice(at, tag)) };
    at = end;
    if (next === "/") yield { kind: "close", name: nameAt(html, tag + 2) };
    else if (isLetter(next)) {
      const name = nameAt(html, tag + 1);
      const parsed = attributesAt(html, tag + 1 + name.length);
      at = parsed.end;
      yield { kind: "open", name, attributes: parsed.attributes };
      if (rawText.has(name)) {
        const stop = endOfRawText(html, name, at);
        if (stop > at) yield { kind: "text", text: decodeRaw(name, html.slice(at, stop)) };
        at = stop;
      }
    }
  }
  if (at < html.length) yield { kind: "text", text: decode(html.slice(at)) };
}

/** Behind the construct that begins at `tag`; undefined if none does. An opening tag's end is found with its attributes. */
function endOf(html: string, tag: number, next: string): number | undefined {
  if (isLetter(next)) return tag + 1;
  if (next === "/") return isLetter(html[tag + 2] ?? "") ? behind(html, ">", tag) : undefined;
  if (html.startsWith("<!--", tag)) return html[tag + 4] === ">" ? tag + 5 : behind(html, "-->", tag + 4);
  if (html.startsWith("<![CDATA[", tag)) return behind(html, "]]>", tag);
  if (next === "!" || next === "?") return behind(html, ">", tag);
  return undefined;
}

/** What is never closed goes on to the end, as in a browser. */
function behind(html: string, what: string, from: number): number {
  const at = html.indexOf(what, from);
  return at < 0 ? html.length : at + what.length;
}

const namePattern = /[^\s/>]*/y;

function nameAt(html: string, at: number): string {
  namePattern.lastIndex = at;
  return namePattern.exec(html)![0].toLowerCase();
}

const attributePattern = /[\s/]*([^\s/>=][^\s/>=]*)(?:\s*=\s*(?:"([^"]*)"|'([^']*)'|([^\s>"'][^\s>]*|)))?/y;

function attributesAt(html: string, from: number): { attributes: Map<string, string>; end: number } {
  const attributes = new Map<string, string>();
  let at = from;
  for (;;) {
    attributePattern.lastIndex = at;
    const match = attributePattern.exec(html);
    if (!match) break;
    at = attributePattern.lastIndex;
    const [, name, double, single, bare] = match;
    const key = name!.toLowerCase();
    if (!attributes.has(key)) attributes.set(key, decode(double ?? single ?? bare ?? ""));
  }
  return { attributes, end: behind(html, ">", at) };
}

function endOfRawText(html: string, name: string, from: number): number {
  const pattern = new RegExp(`</${name}(?=[\\s/>])`, "gi");
  pattern.lastIndex = from;
  return pattern.exec(html)?.index ?? html.length;
}

/** References mean nothing in scripts and styles. */
function decodeRaw(name: string, text: string): string {
  return name === "title" || name === "textarea" ? decode(text) : text;
}

function isLetter(char: string): boolean {
  return /^[a-zA-Z]$/.test(char);
}
