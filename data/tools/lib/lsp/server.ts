/** A language server for one project: started, initialized, and served with what it asks of its client. */
import { basename } from "node:path";
import { pathToFileURL } from "node:url";
import { ResponseError } from "ollie:jsonrpc";
import { Diagnostics } from "./diagnostics.ts";
import { type Document, Documents, pathOf } from "./documents.ts";
import { ServerProcess } from "./process.ts";
import { Progress } from "./progress.ts";
import type { Capabilities, Diagnostic } from "./protocol.ts";
import { languageOf, type ServerSpec } from "./servers.ts";

/** What a server says that has been overtaken by a change or is not ready yet; the same request may do better. */
const askAgain = new Set([-32801, -32802]);

export class LanguageServer {
  readonly documents: Documents;
  readonly diagnostics = new Diagnostics();
  readonly progress = new Progress();
  capabilities: Capabilities = {};
  private readonly process: ServerProcess;

  private constructor(
    readonly spec: ServerSpec,
    readonly root: string,
  ) {
    this.process = new ServerProcess(spec, root);
    this.documents = new Documents(root, this.listener(), (path) => this.isOurs(path));
  }

  /** @throws Error if it does not come up, with what it wrote */
  static async start(spec: ServerSpec, root: string): Promise<LanguageServer> {
    const server = new LanguageServer(spec, root);
    try {
      await server.initialize();
      return server;
    } catch (error) {
      server.process.drop("it did not start");
      const install = spec.install && ` (to install it: ${spec.install})`;
      throw new Error(`${spec.name} could not be started in ${root}: ${(error as Error).message}${install}`, {
        cause: error,
      });
    }
  }

  /** Why it is of no use any more; undefined while it is. */
  get gone(): string | undefined {
    return this.process.gone;
  }

  /** Milliseconds in which it must have answered. */
  get limit(): number {
    return 1000 * this.spec.timeout;
  }

  /** @throws Error with the server's own words; ServerGone */
  async request<T>(method: string, params: unknown, signal: AbortSignal): Promise<T> {
    for (let attempt = 1; ; attempt++) {
      try {
        return await this.process.request<T>(method, params, this.limit, signal);
      } catch (error) {
        const again = error instanceof ResponseError && askAgain.has(error.code);
        if (!again || attempt === 5 || signal.aborted) throw error;
        await Bun.sleep(100 * attempt);
      }
    }
  }

  /** Waits for something that will not come from a dead server. @throws ServerGone */
  whileAlive<T>(expected: Promise<T>): Promise<T> {
    return Promise.race([expected, this.process.ended]);
  }

  /** Waits until it has done what its answers depend on, such as an index, and says so if that takes too long. */
  async ready(limit: number, notes: string[], signal: AbortSignal): Promise<void> {
    await this.progress.idle(limit, signal);
    const busy = this.progress.describe();
    if (busy) notes.push(`${this.spec.name} is still at work (${busy}): this may be incomplete`);
  }

  private isOurs(path: string): boolean {
    return languageOf(this.spec, path) !== undefined || this.spec.roots.includes(basename(path));
  }

  private async initialize(): Promise<void> {
    const { connection } = this.process;
    connection.onRequest((method, params) => this.answer(method, params as never));
    // The connection keeps these to itself.
    connection.onUnhandledProgress(({ token, value }) => this.progress.hear(token, value as never));
    connection.onNotification((method, params) => this.hear(method, params as never));
    connection.listen();
    const uri = pathToFileURL(this.root).href;
    const { capabilities } = await this.process.request<{ capabilities: Capabilities }>(
      "initialize",
      {
        processId: process.pid,
        clientInfo: { name: "ollie" },
        rootUri: uri,
        rootPath: this.root,
        workspaceFolders: this.folders(),
        initializationOptions: this.spec.options,
        capabilities: abilities,
      },
      this.limit,
    );
    this.capabilities = capabilities;
    this.progress.begin();
    this.process.notify("initialized", {});
    if (this.spec.settings)
      this.process.notify("workspace/didChangeConfiguration", { settings: this.spec.settings });
  }

  private folders() {
    return [{ uri: pathToFileURL(this.root).href, name: basename(this.root) }];
  }

  /** What it asks of its client, which is nobody: it gets what it needs to go on. */
  private answer(method: string, params: { items?: { section?: string }[] }): unknown {
    switch (method) {
      case "workspace/configuration":
        return (params.items ?? []).map(({ section }) => this.setting(section));
      case "workspace/workspaceFolders":
        return this.folders();
      case "workspace/applyEdit":
        return { applied: false, failureReason: "only a rename changes files here, and it is asked for" };
      case "window/showDocument":
        return { success: false };
      case "window/workDoneProgress/create":
        this.progress.announce();
        return null;
      case "client/registerCapability":
      case "client/unregisterCapability":
      case "window/showMessageRequest":
        return null;
      default:
        // Requests to look again, such as workspace/semanticTokens/refresh: nobody has looked.
        if (method.endsWith("/refresh")) return null;
        return new ResponseError(-32601, `there is no ${method} here`);
    }
  }

  /** A section like `gopls` or `python.analysis`; null = the server's own default. */
  private setting(section: string | undefined): unknown {
    let value: unknown = this.spec.settings ?? {};
    for (const key of section?.split(".") ?? [])
      value = (value as Record<string, unknown> | undefined)?.[key];
    return value ?? null;
  }

  private hear(method: string, params: Record<string, never>): void {
    if (method !== "textDocument/publishDiagnostics") return;
    const { uri, diagnostics, version } = params as unknown as {
      uri: string;
      diagnostics: Diagnostic[];
      version?: number | null;
    };
    const path = pathOf(uri);
    if (path) this.diagnostics.publish(path, diagnostics, version ?? undefined);
  }

  private listener() {
    const tell = (method: string, params: unknown) => this.process.notify(method, params);
    const sent = (document: Document) => {
      document.sent = { changes: this.documents.changes, order: this.diagnostics.order };
    };
    return {
      opened: (document: Document) => {
        const { uri, version, text, path } = document;
        sent(document);
        const languageId = languageOf(this.spec, path) ?? "plaintext";
        tell("textDocument/didOpen", { textDocument: { uri, languageId, version, text } });
      },
      changed: (document: Document) => {
        const { uri, version, text } = document;
        sent(document);
        // The last is clangd's: it does not look at a text again that is the same, whatever else has changed.
        tell("textDocument/didChange", {
          textDocument: { uri, version },
          contentChanges: [{ text }],
          forceRebuild: true,
        });
        const sync = this.capabilities.textDocumentSync;
        if (typeof sync === "object" && sync.save)
          tell("textDocument/didSave", { textDocument: { uri }, text });
      },
      closed: ({ uri }: Document) => tell("textDocument/didClose", { textDocument: { uri } }),
      files: (changes: unknown[]) => tell("workspace/didChangeWatchedFiles", { changes }),
    };
  }
}

/** What this client can do. */
const abilities = {
  general: { positionEncodings: ["utf-16"] },
  window: { workDoneProgress: true, showDocument: { support: false } },
  workspace: {
    configuration: true,
    workspaceFolders: true,
    didChangeWatchedFiles: { dynamicRegistration: true, relativePatternSupport: true },
    workspaceEdit: { documentChanges: true },
    symbol: {},
  },
  textDocument: {
    synchronization: { didSave: true },
    hover: { contentFormat: ["plaintext", "markdown"] },
    declaration: { linkSupport: true },
    definition: { linkSupport: true },
    typeDefinition: { linkSupport: true },
    implementation: { linkSupport: true },
    references: {},
    documentSymbol: { hierarchicalDocumentSymbolSupport: true },
    completion: {
      completionItem: { snippetSupport: false, labelDetailsSupport: true },
      contextSupport: true,
    },
    rename: { prepareSupport: false },
    diagnostic: {},
    publishDiagnostics: { relatedInformation: true, versionSupport: true },
  },
};
