/** Character references of HTML: all by number, and the 252 names of HTML 4, which is what pages use. */

/** U+00A0 to U+00FF, in order. */
const latin1 =
  "nbsp iexcl cent pound curren yen brvbar sect uml copy ordf laquo not shy reg macr deg plusmn sup2 sup3 acute micro para middot cedil " +
  "sup1 ordm raquo frac14 frac12 frac34 iquest Agrave Aacute Acirc Atilde Auml Aring AElig Ccedil Egrave Eacute Ecirc Euml Igrave Iacute " +
  "Icirc Iuml ETH Ntilde Ograve Oacute Ocirc Otilde Ouml times Oslash Ugrave Uacute Ucirc Uuml Yacute THORN szlig agrave aacute acirc " +
  "atilde auml aring aelig ccedil egrave eacute ecirc euml igrave iacute icirc iuml eth ntilde ograve oacute ocirc otilde ouml divide " +
  "oslash ugrave uacute ucirc uuml yacute thorn yuml";

/** U+0391 to U+03C9, in order; `-` stands for a code point without a name. */
const greek =
  "Alpha Beta Gamma Delta Epsilon Zeta Eta Theta Iota Kappa Lambda Mu Nu Xi Omicron Pi Rho - Sigma Tau Upsilon Phi Chi Psi Omega - - - - " +
  "- - - alpha beta gamma delta epsilon zeta eta theta iota kappa lambda mu nu xi omicron pi rho sigmaf sigma tau upsilon phi chi psi " +
  "omega";

const others =
  "quot:\" amp:& lt:< gt:> apos:' OElig:Œ oelig:œ Scaron:Š scaron:š Yuml:Ÿ fnof:ƒ circ:ˆ tilde:˜ thetasym:ϑ upsih:ϒ piv:ϖ ndash:– mdash:— " +
  "lsquo:‘ rsquo:’ sbquo:‚ ldquo:“ rdquo:” bdquo:„ dagger:† Dagger:‡ bull:• hellip:… permil:‰ prime:′ Prime:″ lsaquo:‹ rsaquo:› oline:‾ " +
  "frasl:⁄ euro:€ image:ℑ weierp:℘ real:ℜ trade:™ alefsym:ℵ larr:← uarr:↑ rarr:→ darr:↓ harr:↔ crarr:↵ lArr:⇐ uArr:⇑ rArr:⇒ dArr:⇓ " +
  "hArr:⇔ forall:∀ part:∂ exist:∃ empty:∅ nabla:∇ isin:∈ notin:∉ ni:∋ prod:∏ sum:∑ minus:− lowast:∗ radic:√ prop:∝ infin:∞ ang:∠ and:∧ " +
  "or:∨ cap:∩ cup:∪ int:∫ there4:∴ sim:∼ cong:≅ asymp:≈ ne:≠ equiv:≡ le:≤ ge:≥ sub:⊂ sup:⊃ nsub:⊄ sube:⊆ supe:⊇ oplus:⊕ otimes:⊗ perp:⊥ " +
  "sdot:⋅ lceil:⌈ rceil:⌉ lfloor:⌊ rfloor:⌋ lang:⟨ rang:⟩ loz:◊ spades:♠ clubs:♣ hearts:♥ diams:♦ check:✓ star:☆ lbrace:{ rbrace:} " +
  "lbrack:[ rbrack:] lpar:( rpar:) num:# colon:: comma:, period:. excl:! quest:? ast:* sol:/ bsol:\\ lowbar:_ vert:| grave:` dollar:$ " +
  "percnt:% plus:+ equals:= semi:; commat:@ hyphen:‐";

const names = new Map<string, string>([
  ...latin1.split(" ").map((name, i): [string, string] => [name, String.fromCharCode(0xa0 + i)]),
  ...greek.split(" ").map((name, i): [string, string] => [name, String.fromCharCode(0x391 + i)]),
  ...others.split(" ").map((pair): [string, string] => {
    const colon = pair.indexOf(":");
    return [pair.slice(0, colon), pair.slice(colon + 1)];
  }),
  ["ensp", " "],
  ["emsp", " "],
  ["thinsp", " "],
  ["zwnj", ""],
  ["zwj", ""],
  ["lrm", ""],
  ["rlm", ""],
  ["shy", ""],
]);

const windows1252 = new TextDecoder("windows-1252");

/** What cannot be a reference stays as it is: an unknown name, or `&copy=2` in an address. */
export function decode(text: string): string {
  if (!text.includes("&")) return text;
  return text.replace(
    /&(?:#(\d{1,7}|[xX][\da-fA-F]{1,6})|([a-zA-Z][a-zA-Z\d]{1,30}));/g,
    (all, number, name) => (number ? fromNumber(number) : (names.get(name) ?? all)),
  );
}

function fromNumber(number: string): string {
  const code = /^x/i.test(number) ? Number.parseInt(number.slice(1), 16) : Number(number);
  // Pages mean these as Windows has them, and so the HTML standard reads them.
  if (code >= 0x80 && code <= 0x9f) return windows1252.decode(Uint8Array.of(code));
  if (code === 0 || code > 0x10ffff || (code >= 0xd800 && code <= 0xdfff)) return "\uFFFD";
  return String.fromCodePoint(code);
}
