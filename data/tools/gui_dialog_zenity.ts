#!/usr/bin/env ollie-run
/** A question to the user with zenity, GNOME's. */
import { askUser } from "./lib/dialog.ts";

await askUser(({ kind, text, title }) => {
  const window = (shape: string, words: string, ...rest: string[]) => [
    ...["zenity", `--${shape}`, `--title=${title}`, `--text=${words}`],
    ...rest,
  ];
  if (kind === "message") return window("info", text, "--no-markup");
  if (kind === "yesno") return window("question", text, "--no-markup");
  // In the others it reads \n and the like; an underscore would mark a key, and the text of a list is always markup.
  const plain = text.replaceAll("\\", "\\\\");
  if (kind === "input") return window("entry", plain.replaceAll("_", "__"));
  // The choices come from stdin, where one that begins with "-" is no option.
  return window("list", Bun.escapeHTML(plain), "--hide-header", "--column=choice");
});
