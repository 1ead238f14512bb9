/** What kind of thing an answer is, and its bytes as text. */

export interface ContentType {
  /** Without parameters, in lower case; empty where the server said nothing. */
  mime: string;
  charset?: string;
}

export type Kind = "html" | "text" | "binary";

export function parseContentType(header: string | null): ContentType {
  const [mime = "", ...parameters] = (header ?? "").split(";");
  const charset = parameters
    .map((parameter) => /^\s*charset\s*=\s*"?([^"\s]+)"?\s*$/i.exec(parameter)?.[1])
    .find(Boolean);
  return { mime: mime.trim().toLowerCase(), ...(charset && { charset }) };
}

const html = /^(?:text\/html|application\/xhtml\+xml)$/;
const text =
  /^(?:text\/.*|.*[/+](?:json|xml|yaml)|application\/(?:javascript|ecmascript|x-javascript|typescript|x-yaml|toml|x-sh|x-ndjson|jsonl?|sql|graphql|x-www-form-urlencoded|x-tex|rtf|pgp-.*|x-patch))$/;
/** What servers say that do not know. */
const unknown = /^(?:|application\/octet-stream|binary\/octet-stream|application\/x-unknown.*)$/;

/** @param start the first bytes: a type is often wrong, but a text has no NUL */
export function kindOf({ mime, charset }: ContentType, start: Uint8Array): Kind {
  const head = start.subarray(0, 4096);
  const wide = byMark(head) !== undefined || /^utf-?(?:16|32)/i.test(charset ?? "");
  if (html.test(mime)) return "html";
  if (!wide && head.includes(0)) return "binary";
  if (text.test(mime)) return "text";
  if (!unknown.test(mime)) return "binary";
  const words = new TextDecoder("latin1").decode(head);
  if (/^\s*(?:<!--.*?-->\s*)*<(?:!doctype\s+html|html)[\s>]/is.test(words)) return "html";
  return mime === "" || isUtf8(head) ? "text" : "binary";
}

/**
 * By its byte order mark, else as the server said, else as the page says, else UTF-8 where it is that, else Windows' Latin alphabet.
 * `note` tells of a character set that nobody knows.
 */
export function decodeText(bytes: Uint8Array, type: ContentType): { text: string; note?: string } {
  const named = byMark(bytes) ?? type.charset ?? declared(bytes);
  const fallback = () => new TextDecoder(isUtf8(bytes) ? "utf-8" : "windows-1252").decode(bytes);
  if (!named) return { text: fallback() };
  try {
    return { text: new TextDecoder(named as Bun.Encoding).decode(bytes) };
  } catch {
    return { text: fallback(), note: `the character set ${JSON.stringify(named)} is not known` };
  }
}

function byMark(bytes: Uint8Array): string | undefined {
  const [a, b, c] = bytes;
  if (a === 0xef && b === 0xbb && c === 0xbf) return "utf-8";
  if (a === 0xfe && b === 0xff) return "utf-16be";
  if (a === 0xff && b === 0xfe) return "utf-16le";
  return undefined;
}

/** In `<meta charset=…>`, `<meta … content="text/html; charset=…">` or `<?xml encoding="…"?>`. */
function declared(bytes: Uint8Array): string | undefined {
  const head = new TextDecoder("latin1").decode(bytes.subarray(0, 4096));
  const found =
    /<meta\b[^>]{0,500}?\bcharset\s*=\s*["']?\s*([\w:.-]+)/i.exec(head)?.[1] ??
    /^\s*<\?xml\b[^>]{0,200}?\bencoding\s*=\s*["']([\w:.-]+)/i.exec(head)?.[1];
  // Who can read the word cannot be reading UTF-16.
  return found && /^utf-?16/i.test(found) ? "utf-8" : found;
}

/** A character may be cut at the end. */
function isUtf8(bytes: Uint8Array): boolean {
  try {
    new TextDecoder("utf-8", { fatal: true }).decode(bytes, { stream: true });
    return true;
  } catch {
    return false;
  }
}
