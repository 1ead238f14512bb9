/** The program that program.test.ts runs. */
import { command, type Options, type Program, runProgram } from "../../src/cli/program.ts";
import { writeOut } from "../../src/cli/stdio.ts";

const globals = { global: { type: "string", value: "X", help: "of all" } } as const satisfies Options;
const options = {
  flag: { type: "boolean", help: "a flag" },
  value: { type: "string", short: "v", multiple: true, value: "V", help: "values" },
} as const;

const show = command<typeof options, typeof globals>({
  usage: "A [B …]",
  about: "Prints what it got.",
  options,
  words: [1, 3],
  async run(call) {
    await writeOut(JSON.stringify(call));
    return 0;
  },
});
const wrap = command<typeof options, typeof globals>({ ...show, ownWords: true });
const plain = (run: () => Promise<number>) =>
  command<Options, typeof globals>({ usage: "", about: "", options: {}, words: [0, 0], run });

const program: Program<typeof globals> = {
  name: "child",
  about: "Is tested.",
  globals,
  commands: {
    show: { summary: "print what it got", load: async () => show },
    wrap: { summary: "print what it got for another program", load: async () => wrap },
    fail: {
      summary: "fail",
      load: async () =>
        plain(async () => {
          throw new Error("two lines\n  of an error");
        }),
    },
    status: { summary: "end with 7", load: async () => plain(async () => 7) },
  },
};

process.exit(await runProgram(program, process.argv.slice(2)));
