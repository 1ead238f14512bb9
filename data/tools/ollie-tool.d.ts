/** What a TypeScript tool (first line `#!/usr/bin/env ollie-run`) may import from "ollie:tool". The ollie binary provides it. */
declare module "ollie:tool" {
  /** The arguments, already checked against the sidecar's `args`. Reads stdin; once. */
  export function readArgs<T>(): Promise<T>;
  /** Adds a line to the result. */
  export function print(text: string): void;
  /** Ends the tool as failed (exit status 1) with a text for the model. */
  export function fail(text: string): never;

  /** The call: whose it is and where it runs. */
  export const call: {
    readonly session: string;
    readonly agent: string;
    readonly cwd: string;
    /** The session's private folder; what is written goes into TMPDIR. */
    readonly tmp: string;
  };

  /** A unified diff with 3 lines of context; in place of one longer than `limit` bytes (default 6,000) its number of lines. */
  export function unifiedDiff(name: string, before: string, after: string, limit?: number): string;

  /** Rules of one .gitignore file. Paths are relative to its folder; those of folders end in "/". */
  export function ignoreRules(text: string): {
    /** What the rules say of a path: `unignored` where one of them begins with "!". */
    test(path: string): { ignored: boolean; unignored: boolean };
  };

  /** A tool of this host, whether loaded or not. */
  export function findTool(
    name: string,
  ): Promise<{ description: string; documentation: string; schema: Record<string, unknown> } | undefined>;

  /** The skills in the folders of OLLIE_SKILLS_PATH, sorted by name. Only where the sidecar says `"remote": false`. */
  export function skills(): Promise<
    {
      name: string;
      description: string;
      file: string;
      /** Its own folder; a single file has none. */
      folder?: string;
      /** What the file says behind its front matter. */
      body: string;
    }[]
  >;

  /** Between a tool and the program that its sidecar names as `service`. */
  export const service: {
    /** In the tool. Rejects with what the service's `answer` throws. */
    ask<T>(request: unknown): Promise<T>;
    /** In the service: from now on it is ready. `signal` is aborted when the call that asks has ended. */
    serve<T>(answer: (request: T, signal: AbortSignal) => Promise<unknown>): Promise<void>;
  };

  /** The session's own 9P tree (OLLIE_ADDR). Only where the sidecar says `"remote": false`. Paths begin at the root. */
  export const nine: {
    read(path: string): Promise<string>;
    /** Replaces the content, or gives a control file its request. Rejects with the server's words. */
    write(path: string, text: string): Promise<void>;
  };
}

/** The package vscode-jsonrpc: JSON-RPC as language servers speak it. */
declare module "ollie:jsonrpc" {
  export * from "vscode-jsonrpc/node";
}
