/**
 * Completions for the shells, made from the tables of commands. `o` is a script and has no table here: its commands are those of its own
 * help.
 */
import { ollie9p } from "../client/program.ts";
import { command, type Options, type Program, WrongUse } from "../program.ts";
import { writeOut } from "../stdio.ts";
import { olliesrv } from "./program.ts";

/** Commands of a program, and the options of each. */
interface Words {
  program: string;
  commands: { name: string; summary: string; options: string[] }[];
}

const shells: Record<string, (all: Words[]) => string> = { bash, zsh, fish };

export const completions = command({
  usage: "bash|zsh|fish",
  about:
    "Prints completions for that shell, of olliesrv, ollie-9p and o. In bash: source <(olliesrv completions bash); in zsh the same;\n" +
    "in fish: olliesrv completions fish | source.",
  options: {},
  words: [1, 1],
  async run({ words }) {
    const shell = Object.hasOwn(shells, words[0]!) ? shells[words[0]!] : undefined;
    if (!shell)
      throw new WrongUse(`no completions for ${words[0]}: there are ${Object.keys(shells).join(", ")}`);
    await writeOut(shell([await wordsOf(olliesrv), await wordsOf(ollie9p), o]));
    return 0;
  },
});

const o: Words = {
  program: "o",
  commands: "new ls env read write tail prompt ask readloop wait stop kill approve tui help"
    .split(" ")
    .map((name) => ({ name, summary: "", options: [] })),
};

async function wordsOf(program: Program<Options>): Promise<Words> {
  const listed = Object.entries(program.commands);
  const commands = listed.map(async ([name, entry]) => ({
    name,
    summary: entry.summary,
    options: [...Object.keys((await entry.load()).options), "help", "version"].map((key) => `--${key}`),
  }));
  return { program: program.name, commands: await Promise.all(commands) };
}

function bash(all: Words[]): string {
  return all
    .map(({ program, commands }) => {
      const name = `_ollie_${program.replace("-", "_")}`;
      const cases = commands.map((one) => `    ${one.name}) words="${one.options.join(" ")}" ;;\n`).join("");
      return (
        `${name}() {\n  local words="${commands.map((one) => one.name).join(" ")}"\n` +
        `  [ "$COMP_CWORD" -le 1 ] || case \${COMP_WORDS[1]} in\n${cases}    *) words= ;;\n  esac\n` +
        `  COMPREPLY=($(compgen -W "$words" -- "\${COMP_WORDS[COMP_CWORD]}"))\n}\n` +
        `complete -o default -F ${name} ${program}\n`
      );
    })
    .join("\n");
}

/** zsh understands those of bash, once told to. */
function zsh(all: Words[]): string {
  return `autoload -Uz bashcompinit && bashcompinit\n${bash(all)}`;
}

function fish(all: Words[]): string {
  return all
    .flatMap(({ program, commands }) =>
      commands.flatMap(({ name, summary, options }) => [
        `complete -c ${program} -n __fish_use_subcommand -f -a ${name} -d '${summary}'\n`,
        ...options.map(
          (key) => `complete -c ${program} -n '__fish_seen_subcommand_from ${name}' -l ${key.slice(2)}\n`,
        ),
      ]),
    )
    .join("");
}
