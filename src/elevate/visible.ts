/** A text of unknown origin as one line that shows all there is in it and that no terminal obeys. */

/** The signs that stand for control characters. */
const returnSign = "⏎";
const pictures = 0x2400;
const deletePicture = "␡";

/**
 * Characters that are not seen, that look like an ordinary blank, or that change how others are shown: controls, format characters (the
 * bidirectional overrides among them), separators, lone surrogates, and all that Unicode says to show nothing for. The signs
 * that stand for such characters count as well: they could pass for what they stand for.
 */
const hidden =
  /[\p{Cc}\p{Cf}\p{Cs}\p{Co}\p{Cn}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}\u2400-\u2426⏎]|(?! )\p{Zs}/gu;

/** A newline becomes ⏎, other controls of ASCII their pictures (␛, ␇), everything else hidden `<U+202E>`. Nothing is cut. */
export function visible(text: string): string {
  return text.replace(hidden, (character) => {
    const code = character.codePointAt(0)!;
    if (character === "\n") return returnSign;
    if (code < 0x20) return String.fromCodePoint(pictures + code);
    if (code === 0x7f) return deletePicture;
    return `<U+${code.toString(16).toUpperCase().padStart(4, "0")}>`;
  });
}
