#!/usr/bin/env ollie-run
import { pathToFileURL } from "node:url";
/** Lists the symbols of a file, or those of the whole project whose names match. */
import { print, readArgs } from "ollie:tool";
import { ask, type Located, printList, Sources } from "./lib/lsp/ask.ts";
import { type DocumentSymbol, type SymbolInformation, symbolKind } from "./lib/lsp/protocol.ts";
import { absolute, realFile, show, statFile } from "./lib/paths.ts";

const args = await readArgs<{ path?: string; query?: string }>();
const sources = new Sources();
if (args.query !== undefined) await ofProject(args.query, absolute(args.path ?? "."));
else if (args.path !== undefined) await ofFile(realFile(args.path));
else throw new Error('say what to list: "path" for the symbols of a file, "query" for those of the project');

async function ofFile(path: string): Promise<void> {
  if (!statFile(path)) throw new Error(`${show(path)} does not exist`);
  const symbols =
    (await ask<(DocumentSymbol | SymbolInformation)[] | null>({
      do: "request",
      path,
      method: "textDocument/documentSymbol",
      needs: "documentSymbolProvider",
      params: {},
      indexed: false,
    })) ?? [];
  const uri = pathToFileURL(path).href;
  if (symbols.length === 0) print(`${show(path)} has no symbols`);
  printList(
    symbols.flatMap((symbol) => ("location" in symbol ? [flat(symbol)] : tree(symbol, uri, ""))),
    "query finds the others by name",
  );
}

async function ofProject(query: string, path: string): Promise<void> {
  const symbols = await ask<SymbolInformation[]>({ do: "symbols", query, path });
  if (symbols.length === 0) print(`No symbol of the project matches ${query}`);
  printList(symbols.map(flat), "a longer query finds fewer");
}

function tree(symbol: DocumentSymbol, uri: string, indent: string): string[] {
  const { name, detail, kind, selectionRange, children = [] } = symbol;
  const more = detail ? ` ${detail.replace(/\s+/g, " ")}` : "";
  const row = `${sources.place({ uri, range: selectionRange })}: ${indent}${symbolKind(kind)} ${name}${more}`;
  return [row, ...children.flatMap((child) => tree(child, uri, `${indent}  `))];
}

function flat({ name, kind, containerName, location }: SymbolInformation): string {
  const start = { line: 0, character: 0 };
  const located: Located = { range: { start, end: start }, ...location };
  return `${sources.place(located)}: ${symbolKind(kind)} ${name}${containerName ? ` in ${containerName}` : ""}`;
}
