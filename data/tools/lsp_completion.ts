#!/usr/bin/env ollie-run
/** Lists what could be written at a place. */
import { print, readArgs } from "ollie:tool";
import { printList, Subject } from "./lib/lsp/ask.ts";
import { type CompletionItem, completionKind } from "./lib/lsp/protocol.ts";

/** Suggestions that are shown. */
const most = 50;

const { after, ...target } = await readArgs<{
  path: string;
  line: number;
  column?: number;
  after?: string;
}>();
if (target.column === undefined && after === undefined)
  throw new Error('say where: "column", or "after" with the text of that line which goes before');
const subject = new Subject({ ...target, symbol: after }, "cursor");
const context = { triggerKind: 1 };
type Answer = CompletionItem[] | { items: CompletionItem[] } | null;
const answer = await subject.request<Answer>("textDocument/completion", "completionProvider", { context });
const { line, character } = subject.position;
const prefix = /[\p{L}\p{N}_$]*$/u.exec(subject.lines.line(line + 1).slice(0, character))![0].toLowerCase();
const items = fitting(Array.isArray(answer) ? answer : (answer?.items ?? [])).sort(byRank);
if (items.length === 0) print(`Nothing is suggested at ${subject.place}`);
printList(items.slice(0, most).map(row), "");
if (items.length > most)
  print(`[${most} of ${items.length} suggestions; a longer beginning of the name leaves fewer]`);

function filterText(item: CompletionItem): string {
  return item.filterText ?? item.label;
}

/** Those that begin like what stands there, else those that have it somewhere: not all servers look at it themselves. */
function fitting(all: CompletionItem[]): CompletionItem[] {
  const starting = all.filter((item) => filterText(item).toLowerCase().startsWith(prefix));
  return starting.length > 0
    ? starting
    : all.filter((item) => filterText(item).toLowerCase().includes(prefix));
}

/** The server's own order. */
function byRank(a: CompletionItem, b: CompletionItem): number {
  const order = (item: CompletionItem) => item.sortText ?? item.label;
  return order(a) < order(b) ? -1 : order(a) > order(b) ? 1 : 0;
}

function row(item: CompletionItem): string {
  const { label, labelDetails, detail, kind } = item;
  const more = [labelDetails?.detail, detail, labelDetails?.description].filter(Boolean).join(" ");
  return [label.trim(), completionKind(kind), more.replace(/\s+/g, " ").trim()].filter(Boolean).join("\t");
}
