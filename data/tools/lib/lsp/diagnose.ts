/** The problems of one file as it is now: asked for where the server can be asked, else waited for until it has told. */
import type { Diagnostic } from "./protocol.ts";
import type { LanguageServer } from "./server.ts";

/** Milliseconds in which a server must have said something about a file, however long its answers may take. */
const longest = 30_000;

export interface FileDiagnostics {
  path: string;
  items: Diagnostic[];
}

export async function diagnose(
  server: LanguageServer,
  path: string,
  notes: string[],
  signal: AbortSignal,
): Promise<FileDiagnostics> {
  const { documents } = server;
  const limit = Math.min(longest, server.limit);
  documents.refresh();
  const document = documents.require(path);
  const { changes } = documents;
  if (server.capabilities.diagnosticProvider) {
    await server.ready(limit, notes, signal);
    const items = await pull(server, document.uri, signal);
    // What takes a compiler's run is told later, by notification.
    const told = server.diagnostics.get(path)?.items ?? [];
    return { path, items: unique([...items, ...told]) };
  }
  // What other files hold may be the reason for a problem here.
  if (document.sent.changes !== changes) documents.touch(document);
  if (document.diagnosed === changes) {
    const last = server.diagnostics.get(path);
    if (last) return { path, items: last.items };
  }
  const { version, sent } = document;
  await server.ready(limit, notes, signal);
  const published = await server.whileAlive(
    server.diagnostics.settled(path, version, sent.order, limit, signal),
  );
  if (published) document.diagnosed = changes;
  else notes.push(silence(server, limit));
  return { path, items: published?.items ?? server.diagnostics.get(path)?.items ?? [] };
}

async function pull(server: LanguageServer, uri: string, signal: AbortSignal): Promise<Diagnostic[]> {
  const report = await server.request<{ items?: Diagnostic[] }>(
    "textDocument/diagnostic",
    { textDocument: { uri } },
    signal,
  );
  return report.items ?? [];
}

function silence(server: LanguageServer, limit: number): string {
  return `${server.spec.name} has said nothing of the file as it is now within ${limit / 1000} s: this may be out of date`;
}

function unique(items: Diagnostic[]): Diagnostic[] {
  const seen = new Set<string>();
  return items.filter((item) => {
    const key = JSON.stringify([item.range, item.message]);
    return !seen.has(key) && seen.add(key);
  });
}
