/** doc/USAGE.md knows every command, option, verb and key, and the documents name no command that does not exist. */
import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import { join } from "node:path";
import { ollie9p } from "../../src/cli/client/program.ts";
import type { Options } from "../../src/cli/program.ts";
import { olliesrv } from "../../src/cli/server/program.ts";
import { agentKeys, sessionKeys } from "../../src/session/keys.ts";
import { dist, startServer, succeeded, type TestServer } from "../e2e/harness.ts";
import { codeSpans, prose, read, section } from "./markdown.ts";
import { parseDocument, runDocuments } from "./transcript.ts";

setDefaultTimeout(60_000);

const usage = read("doc/USAGE.md");
const reference = section(usage, "All commands");
const later = reference.slice(reference.indexOf("Not there yet"));

let server: TestServer;
beforeAll(async () => {
  server = await startServer();
});
afterAll(() => server?.stop());

/** Commands of `o` by its own help. */
async function commandsOfO(): Promise<string[]> {
  const help = succeeded(await server.home.run([join(dist, "o"), "--help"]));
  return ["help", ...[...help.matchAll(/^ {2}([a-z]+) /gm)].map((match) => match[1]!)];
}

describe("doc/USAGE.md", () => {
  test.each([olliesrv, ollie9p])("lists the commands and options of $name", async (program) => {
    for (const [name, entry] of Object.entries(program.commands)) {
      expect(reference).toContain(`\`${program.name} ${name}`);
      const { options } = await entry.load();
      for (const [key, { short }] of Object.entries(options as Options)) {
        expect(reference).toContain(`\`--${key}`);
        if (short) expect(reference).toContain(`\`-${short}`);
      }
    }
    for (const key of Object.keys(program.globals)) expect(reference).toContain(`\`--${key}`);
  });

  test("lists the commands of o", async () => {
    const commands = await commandsOfO();
    expect(commands).toContain("ask");
    for (const name of commands) expect(reference).toMatch(new RegExp(`^\\| \`o ${name}[ \`]`, "m"));
  });

  test("lists the verbs", async () => {
    const name = await server.create();
    await server.write(`s/${name}/prompt`, "/help\n");
    const chat = await server.read(`s/${name}/chat`);
    const verbs = [...chat.matchAll(/^(\/[a-z]+)/gm)].map((match) => match[1]!);
    expect(verbs).toContain("/stop");
    const prompts = section(usage, "Prompts");
    for (const verb of verbs) expect(prompts).toMatch(new RegExp(`\`${verb}[ \`]`));
  });

  test("lists the keys of cfg", () => {
    const settings = prose(section(usage, "Settings")).replaceAll("\n", " ");
    const words = codeSpans(settings).flatMap((text) => text.split(" "));
    for (const key of [...Object.keys(agentKeys), ...Object.keys(sessionKeys)]) expect(words).toContain(key);
  });
});

describe("the documents", () => {
  test("name no command that does not exist", async () => {
    const known: Record<string, string[]> = {
      olliesrv: [...Object.keys(olliesrv.commands), "ollie-run"],
      "ollie-9p": Object.keys(ollie9p.commands),
      o: await commandsOfO(),
    };
    const unknown = runDocuments.flatMap((document) => {
      const text = read(document).replace(later, "");
      const parts = parseDocument(text).map((part) => ("command" in part ? part.command : part.text));
      const code = [...codeSpans(prose(text)), ...parts].join("\n");
      return [...code.matchAll(/(?<![\w./-])(olliesrv|ollie-9p|o) ([a-z][a-z-]*)/g)]
        .filter(([, program, name]) => !known[program!]!.includes(name!))
        .map(([words]) => `${document}: ${words}`);
    });
    expect(unknown).toEqual([]);
  });

  test("call nothing missing that is there", async () => {
    const commands = await commandsOfO();
    const missing = codeSpans(later).map((text) => text.replace(/^o /, ""));
    expect(missing.length).toBeGreaterThan(0);
    for (const name of missing) expect(commands).not.toContain(name);
  });
});
