#!/usr/bin/env ollie-run
/** A question to the user with kdialog, KDE's. */
import { askUser } from "./lib/dialog.ts";

await askUser(({ kind, text, choices, title }) => {
  // Written with "=", a text that begins with "-" is no option.
  const window = (shape: string, ...rest: string[]) => [
    "kdialog",
    `--title=${title}`,
    `--${shape}=${asText(text)}`,
    ...rest,
  ];
  if (kind === "message") return window("msgbox");
  if (kind === "yesno") return window("yesno");
  if (kind === "input") return window("inputbox");
  // What is printed, and what is shown.
  return window("menu", "--", ...choices.flatMap((choice) => [choice, choice]));
});

/** kdialog reads \n and the like, and Qt takes a text for HTML if something in it looks like a tag. */
function asText(text: string): string {
  const plain = text.replaceAll("\\", "\\\\");
  return text.includes("<") ? `<qt>${Bun.escapeHTML(plain).replaceAll("\n", "<br>")}</qt>` : plain;
}
