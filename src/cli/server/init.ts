import { join } from "node:path";
import { installData } from "../../config/install.ts";
import { tilde } from "../../config/paths.ts";
import { command } from "../program.ts";
import { writeOut } from "../stdio.ts";
import { whereabouts, whichOptions } from "./options.ts";

const options = {
  force: { type: "boolean", help: "also replace what you changed; yours stay beside it as NAME.bak" },
  config: whichOptions.config,
} as const;

export const init = command({
  usage: "[--force] [--config DIR]",
  about:
    "Writes the env template, agents, prompts, skills, tools and scripts into the config folder, and o into ~/.local/bin. What you changed\n" +
    "or removed is left as it is and named. The first start of the server does the same.",
  options,
  words: [0, 0],
  async run({ values }) {
    const { paths } = whereabouts(values);
    const bin = join(paths.home, ".local/bin");
    const { written, kept, removed } = installData(paths.config, bin, values.force);
    const place = (name: string) =>
      tilde(name === "bin/o" ? join(bin, "o") : join(paths.config, name), paths.home);
    const lines = [
      ...written.map((name) => `written  ${place(name)}`),
      ...removed.map((name) => `removed  ${place(name)} (no longer shipped)`),
      ...kept.map(
        (name) =>
          `kept     ${place(name)} (changed or removed by you${name === "env" ? "" : "; --force replaces it"})`,
      ),
    ];
    if (lines.length === 0) lines.push(`${tilde(paths.config, paths.home)} is up to date`);
    if (!(process.env.PATH ?? "").split(":").includes(bin))
      lines.push(`${tilde(bin, paths.home)} is not on your PATH`);
    await writeOut(lines.map((line) => `${line}\n`).join(""));
    return 0;
  },
});
