/** What the tools ask of language servers: one server for each project and language, kept for the next call. */
import { realpathSync, statSync } from "node:fs";
import { show } from "../paths.ts";
import { walk } from "../walk.ts";
import { diagnose, type FileDiagnostics } from "./diagnose.ts";
import { ServerGone } from "./process.ts";
import { LanguageServer } from "./server.ts";
import { isInstalled, languageOf, loadServers, rootOf, type ServerSpec, serverFor } from "./servers.ts";

/** Milliseconds to wait for an index that the answer depends on, and for a server that has just been started. */
const indexLimit = 20_000;
const startLimit = 5000;
/** Files that are looked at to find out which languages a folder is written in. */
const mostLooks = 5000;

export type Request =
  | {
      do: "request";
      /** A file, absolute. */
      path: string;
      method: string;
      /** What goes with the document. */
      params: object;
      /** The server's capability that it takes. */
      needs: string;
      /** The answer depends on files that nobody has opened. */
      indexed: boolean;
    }
  | { do: "symbols"; query: string; path: string }
  | { do: "diagnostics"; paths: string[] };

export interface Reply<T> {
  result: T;
  /** What else is to be said: sentences. */
  notes: string[];
}

interface Project {
  spec: ServerSpec;
  server: Promise<LanguageServer>;
}

export class Bridge {
  private readonly projects = new Map<string, Project>();

  constructor(private readonly cwd: string) {}

  /** @throws Error that says what is missing or went wrong */
  async answer(request: Request, signal: AbortSignal): Promise<Reply<unknown>> {
    switch (request.do) {
      case "request":
        return this.request(request, signal);
      case "symbols":
        return this.symbols(request, signal);
      case "diagnostics":
        return this.diagnostics(request.paths, signal);
    }
  }

  private request(request: Request & { do: "request" }, signal: AbortSignal): Promise<Reply<unknown>> {
    const { path, method, params, needs, indexed } = request;
    return this.with(serverFor(path), path, async (server, notes) => {
      mustBeAble(server, needs);
      server.documents.refresh();
      const { uri } = server.documents.require(path);
      if (indexed) await server.ready(indexLimit, notes, signal);
      else await server.progress.start(startLimit, signal);
      return server.request(method, { textDocument: { uri }, ...params }, signal);
    });
  }

  private async symbols({ query, path }: Request & { do: "symbols" }, signal: AbortSignal) {
    const samples = statSync(path, { throwIfNoEntry: false })?.isFile() ? [path] : samplesIn(path);
    const replies = await Promise.all(
      samples.map((sample) =>
        this.with(serverFor(sample), sample, async (server, notes) => {
          if (!server.capabilities.workspaceSymbolProvider) return [];
          server.documents.refresh();
          // Some know of no project before they have seen a file of it.
          server.documents.require(sample);
          await server.ready(indexLimit, notes, signal);
          return (await server.request<unknown[] | null>("workspace/symbol", { query }, signal)) ?? [];
        }),
      ),
    );
    return { result: replies.flatMap(({ result }) => result), notes: replies.flatMap(({ notes }) => notes) };
  }

  private async diagnostics(paths: string[], signal: AbortSignal): Promise<Reply<FileDiagnostics[]>> {
    const replies = await Promise.all(
      paths.map((path) =>
        this.with(serverFor(path), path, (server, notes) => diagnose(server, path, notes, signal)),
      ),
    );
    const notes = new Set(replies.flatMap((reply) => reply.notes));
    return { result: replies.map(({ result }) => result), notes: [...notes] };
  }

  /** Does the work with the file's server. One that has died, before or meanwhile, is started again, once, and that is said. */
  private async with<T>(
    spec: ServerSpec,
    path: string,
    work: (server: LanguageServer, notes: string[]) => Promise<T>,
  ): Promise<Reply<T>> {
    const root = realpathSync(rootOf(spec, path, this.cwd));
    const notes: string[] = [];
    for (let attempt = 1; ; attempt++) {
      const server = await this.server(spec, root, notes);
      try {
        return { result: await work(server, notes), notes };
      } catch (error) {
        if (!(error instanceof ServerGone)) throw new Error(`${spec.name}: ${(error as Error).message}`);
        if (attempt === 2)
          throw new Error(`${spec.name} has ended twice in this call, the last time: ${error.message}`);
      }
    }
  }

  private async server(spec: ServerSpec, root: string, notes: string[]): Promise<LanguageServer> {
    const key = JSON.stringify([root, spec]);
    const known = this.projects.get(key);
    const server = await known?.server.catch(() => undefined);
    if (server && !server.gone) return server;
    // Another call may have started it meanwhile.
    const newer = this.projects.get(key);
    if (newer && newer !== known) return newer.server;
    if (server) notes.push(`${spec.name} had ended (${server.gone}) and was started again`);
    const project = { spec, server: LanguageServer.start(spec, root) };
    this.projects.set(key, project);
    return project.server;
  }
}

function mustBeAble(server: LanguageServer, needs: string): void {
  if (!server.capabilities[needs]) throw new Error(`this server cannot do that (it has no ${needs})`);
}

/** A file for each language of a folder that a server is here for. @throws Error if there is none */
function samplesIn(folder: string): string[] {
  const specs = loadServers().filter(isInstalled);
  const samples = new Map<string, string>();
  let looks = 0;
  for (const path of walk(folder)) {
    const spec = specs.find((one) => languageOf(one, path));
    if (spec && !samples.has(spec.name)) samples.set(spec.name, path);
    if (++looks === mostLooks) break;
  }
  if (samples.size === 0)
    throw new Error(`no file in ${show(folder)} is of a language that a language server is installed for`);
  return [...samples.values()];
}
