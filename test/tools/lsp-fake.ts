/**
 * A language server that behaves as the file `behaviour` in its working folder says, a word a line. What a hover shows is what the
 * server knows: the document as it was told, the place, what it has been told beside.
 *
 * It is written without the package that the bridge uses, so that both do not make the same mistake.
 */
import { appendFileSync, existsSync, readFileSync, rmSync } from "node:fs";
import { fileURLToPath } from "node:url";

interface Message {
  id?: number | string;
  method?: string;
  // biome-ignore lint/suspicious/noExplicitAny: whatever comes
  params?: any;
  result?: unknown;
  error?: { code: number; message: string };
}

const documents = new Map<string, { version: number; text: string; language: string }>();
const told: string[] = [];
const answers: Record<string, unknown> = {};

function behaves(word: string): boolean {
  return existsSync("behaviour") && readFileSync("behaviour", "utf8").split("\n").includes(word);
}

/** The same, for what it does only once. */
function once(word: string): boolean {
  if (!behaves(word)) return false;
  rmSync("behaviour");
  return true;
}

function send(message: Message): void {
  const text = JSON.stringify({ jsonrpc: "2.0", ...message });
  process.stdout.write(`Content-Length: ${Buffer.byteLength(text)}\r\n\r\n${text}`);
}

function ask(method: string, params: unknown): void {
  send({ id: `fake-${method}`, method, params });
}

const at = (line: number, start: number, end: number) => ({
  start: { line, character: start },
  end: { line, character: end },
});

/** Every `BAD` in a text is an error, and so is one in the file `other.fake` beside it. */
function problems(uri: string): unknown[] {
  const text = documents.get(uri)?.text ?? "";
  const lines = text.split("\n");
  const found = lines.flatMap((line, i) =>
    line.includes("BAD")
      ? [{ range: at(i, line.indexOf("BAD"), line.indexOf("BAD") + 3), message: "bad" }]
      : [],
  );
  const other = fileURLToPath(new URL("other.fake", uri));
  if (text.includes("use other") && existsSync(other) && readFileSync(other, "utf8").includes("BAD"))
    found.push({ range: at(0, 0, 1), message: "the other is bad" });
  return found;
}

function publish(uri: string): void {
  const version = documents.get(uri)?.version;
  const params = (extra: object) => ({ uri, ...(!behaves("unversioned") && { version }), ...extra });
  const say = (diagnostics: unknown[]) =>
    send({ method: "textDocument/publishDiagnostics", params: params({ diagnostics }) });
  if (behaves("pull") || behaves("silent")) return;
  if (behaves("twice")) {
    say([]);
    setTimeout(() => say(problems(uri)), 150);
  } else setTimeout(() => say(problems(uri)), behaves("slow") ? 400 : 0);
}

/** Where a word stands in all documents, and in those on disk beside them. */
function places(word: string) {
  if (word === "") return [];
  return [...documents].flatMap(([uri, { text }]) =>
    text.split("\n").flatMap((line, i) =>
      [...line.matchAll(new RegExp(`\\b${word}\\b`, "g"))].map((match) => ({
        uri,
        range: at(i, match.index, match.index + word.length),
      })),
    ),
  );
}

function wordAt(uri: string, { line, character }: { line: number; character: number }): string {
  const text = documents.get(uri)!.text.split("\n")[line]!;
  return /^\w*/.exec(text.slice(character))![0];
}

const handlers: Record<string, (params: never) => unknown> = {
  initialize: ({ initializationOptions, rootUri }: { initializationOptions: unknown; rootUri: string }) => {
    answers.options = initializationOptions;
    answers.root = rootUri;
    return {
      capabilities: {
        textDocumentSync: { openClose: true, change: 1, save: true },
        hoverProvider: true,
        definitionProvider: true,
        referencesProvider: true,
        documentSymbolProvider: true,
        workspaceSymbolProvider: true,
        completionProvider: {},
        renameProvider: !behaves("no rename"),
        ...(behaves("pull") && { diagnosticProvider: { interFileDependencies: true } }),
      },
    };
  },
  "textDocument/hover": ({ textDocument: { uri }, position }) => ({
    contents: [
      { language: "json", value: JSON.stringify({ ...documents.get(uri), position, told, answers }) },
    ],
  }),
  "textDocument/definition": ({ textDocument: { uri }, position }) => {
    const [first] = places(wordAt(uri, position));
    if (behaves("archive")) return { uri: "jar:file:///lib.jar!/A.class", range: at(4, 2, 3) };
    if (behaves("null")) return null;
    return behaves("links") ? [{ targetUri: first!.uri, targetSelectionRange: first!.range }] : first;
  },
  "textDocument/references": ({ textDocument: { uri }, position }) => {
    const found = places(wordAt(uri, position));
    return behaves("many")
      ? Array.from({ length: 1000 }, (_, i) => ({ ...found[0]!, range: at(i, 0, 1) }))
      : found;
  },
  "textDocument/documentSymbol": ({ textDocument: { uri } }) =>
    behaves("flat")
      ? [{ name: "old", kind: 6, containerName: "box", location: { uri, range: at(0, 0, 1) } }]
      : [
          {
            name: "box",
            kind: 5,
            selectionRange: at(0, 0, 1),
            children: [{ name: "in", kind: 6, selectionRange: at(1, 1, 2) }],
          },
        ],
  "workspace/symbol": ({ query }: { query: string }) =>
    [...documents.keys()].map((uri) => ({ name: query, kind: 12, location: { uri, range: at(0, 0, 1) } })),
  "textDocument/completion": () => ({
    items: [
      { label: "preface", kind: 3, sortText: "2" },
      { label: "prefix", kind: 6, detail: "a  text", sortText: "1" },
      { label: "unrelated", sortText: "0" },
    ],
  }),
  "textDocument/diagnostic": ({ textDocument: { uri } }) => ({ kind: "full", items: problems(uri) }),
  "textDocument/rename": ({ textDocument: { uri }, position, newName }) => {
    if (behaves("refuse")) throw { code: -32600, message: "a keyword cannot be renamed" };
    const byUri = Object.groupBy(places(wordAt(uri, position)), (place) => place.uri);
    const edits = Object.entries(byUri).map(([uri, found]) => ({
      textDocument: { uri, version: documents.get(uri)!.version },
      edits: found!.map(({ range }) => ({ range, newText: newName })),
    }));
    if (behaves("move"))
      return { documentChanges: [...edits, { kind: "rename", oldUri: uri, newUri: `${uri}2` }] };
    if (behaves("overlap")) return { changes: { [uri]: [...edits[0]!.edits, ...edits[0]!.edits] } };
    return behaves("old edits")
      ? { changes: Object.fromEntries(edits.map(({ textDocument, edits }) => [textDocument.uri, edits])) }
      : { documentChanges: edits };
  },
};

function notified(method: string, params: NonNullable<Message["params"]>): void {
  const { textDocument, contentChanges, changes } = params;
  if (method === "initialized") started();
  if (method === "textDocument/didOpen") {
    const { uri, version, text, languageId } = textDocument;
    documents.set(uri, { version, text, language: languageId });
    publish(uri);
  }
  if (method === "textDocument/didChange") {
    const known = documents.get(textDocument.uri)!;
    documents.set(textDocument.uri, {
      ...known,
      version: textDocument.version,
      text: contentChanges[0].text,
    });
    publish(textDocument.uri);
  }
  if (method === "textDocument/didClose") documents.delete(textDocument.uri);
  if (method === "workspace/didChangeWatchedFiles")
    for (const { uri, type } of changes) told.push(`${type} ${fileURLToPath(uri).split("/").pop()}`);
}

function started(): void {
  appendFileSync("starts", `${process.pid}\n`);
  if (behaves("asks")) {
    ask("workspace/configuration", { items: [{ section: "fake.inner" }, { section: "nothing" }] });
    ask("client/registerCapability", {
      registrations: [{ id: "1", method: "workspace/didChangeWatchedFiles" }],
    });
    ask("window/workDoneProgress/create", { token: "t" });
    ask("workspace/applyEdit", { edit: {} });
    ask("workspace/workspaceFolders", null);
    ask("window/showMessageRequest", { type: 3, message: "?", actions: [{ title: "ok" }] });
    ask("workspace/semanticTokens/refresh", undefined);
    ask("fake/unheardOf", {});
  }
  if (behaves("busy")) {
    const progress = (value: object) => send({ method: "$/progress", params: { token: 7, value } });
    progress({ kind: "begin", title: "Indexing", percentage: 40 });
    setTimeout(() => {
      told.push("indexed");
      progress({ kind: "end" });
    }, 600);
  }
  if (behaves("flood")) for (let i = 0; i < 2000; i++) process.stderr.write(`${"noise ".repeat(100)}\n`);
}

function receive(message: Message): void {
  const { id, method, params } = message;
  if (method === undefined) {
    answers[String(id).replace("fake-", "")] = message.error?.message ?? message.result;
    return;
  }
  if (id === undefined) {
    notified(method, params ?? {});
    return;
  }
  if (method === "initialize" && behaves("no start")) {
    process.stderr.write("there is no toolchain\n");
    process.exit(7);
  }
  if (method === "initialize" && behaves("hang at start")) return;
  if (method === "textDocument/hover") {
    if (once("hang") || behaves("hang always")) return;
    if (once("die") || behaves("die always")) {
      process.stderr.write("fatal: out of ideas\n", () => process.exit(9));
      return;
    }
    if (once("garbage")) {
      process.stdout.write("Segmentation fault\r\n\r\nwhatever");
      return;
    }
    if (once("overtaken")) {
      send({ id, error: { code: -32801, message: "content modified" } });
      return;
    }
  }
  try {
    const handler = handlers[method];
    if (!handler) throw { code: -32601, message: `no ${method}` };
    send({ id, result: handler(params as never) ?? null });
  } catch (error) {
    send({ id, error: error as { code: number; message: string } });
  }
}

let buffer = Buffer.alloc(0);
process.stdin.on("data", (chunk: Buffer) => {
  buffer = Buffer.concat([buffer, chunk]);
  for (;;) {
    const end = buffer.indexOf("\r\n\r\n");
    const length = Number(/Content-Length: (\d+)/.exec(buffer.subarray(0, end).toString())?.[1]);
    if (end < 0 || buffer.length < end + 4 + length) return;
    const body = buffer.subarray(end + 4, end + 4 + length).toString();
    buffer = buffer.subarray(end + 4 + length);
    receive(JSON.parse(body));
  }
});
process.stdin.on("end", () => process.exit(0));
