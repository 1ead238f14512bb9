/** The parts of the Language Server Protocol 3.17 that are used here, in its own names. */

/** Both count from 0; `character` is in UTF-16 code units. */
export interface Position {
  line: number;
  character: number;
}

export interface Range {
  start: Position;
  /** Not included. */
  end: Position;
}

export interface Location {
  uri: string;
  range: Range;
}

export interface LocationLink {
  targetUri: string;
  targetSelectionRange: Range;
}

export interface Diagnostic {
  range: Range;
  /** 1 error, 2 warning, 3 information, 4 hint. */
  severity?: number;
  code?: number | string;
  source?: string;
  message: string;
  relatedInformation?: { location: Location; message: string }[];
}

export interface TextEdit {
  range: Range;
  newText: string;
}

export interface TextDocumentEdit {
  textDocument: { uri: string; version?: number | null };
  edits: TextEdit[];
}

/** Of a `documentChanges` entry that is about a whole file. */
export interface FileOperation {
  kind: "create" | "rename" | "delete";
  uri?: string;
  oldUri?: string;
}

export interface WorkspaceEdit {
  changes?: Record<string, TextEdit[]>;
  documentChanges?: (TextDocumentEdit | FileOperation)[];
}

type MarkedString = string | { language?: string; kind?: string; value: string };

export interface Hover {
  contents: MarkedString | MarkedString[];
}

export interface DocumentSymbol {
  name: string;
  detail?: string;
  kind: number;
  selectionRange: Range;
  children?: DocumentSymbol[];
}

export interface SymbolInformation {
  name: string;
  kind: number;
  containerName?: string;
  location: Location | { uri: string };
}

export interface CompletionItem {
  label: string;
  labelDetails?: { detail?: string; description?: string };
  kind?: number;
  detail?: string;
  sortText?: string;
  filterText?: string;
  deprecated?: boolean;
  tags?: number[];
}

export interface Capabilities {
  textDocumentSync?: number | { openClose?: boolean; change?: number; save?: boolean | object };
  diagnosticProvider?: object;
  [provider: string]: unknown;
}

const symbolKinds =
  "file module namespace package class method property field constructor enum interface function variable constant string number boolean array object key null enum-member struct event operator type-parameter".split(
    " ",
  );
const completionKinds =
  "text method function constructor field variable class interface module property unit value enum keyword snippet color file reference folder enum-member constant struct event operator type-parameter".split(
    " ",
  );

export function symbolKind(kind: number): string {
  return symbolKinds[kind - 1] ?? "symbol";
}

export function completionKind(kind: number | undefined): string {
  return completionKinds[(kind ?? 0) - 1] ?? "";
}
