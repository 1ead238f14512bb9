/** What people see of the actors: the state line, a snapshot as JSON, a machine as a Mermaid diagram. */
import type { AnyMachineSnapshot, AnyStateMachine, SnapshotFrom } from "xstate";
import type { agentMachine } from "./agent.ts";

type AgentSnapshot = SnapshotFrom<typeof agentMachine>;

/**
 * The content of `state`: `idle`, `thinking`, `approving: a` (calls that wait to be allowed), `calling: a, b` (running calls), both in
 * call order and each name once, `limitretry: TIME`, `unreachable: HOST`. Of several calls what waits for a person is said first, then
 * what waits for a host.
 */
export function stateLine(snapshot: AgentSnapshot): string {
  const { calls, host, retryAt } = snapshot.context;
  if (snapshot.matches("idle") || snapshot.matches("dead")) return "idle";
  if (snapshot.matches("limitretry")) return `limitretry: ${new Date(retryAt ?? 0).toISOString()}`;
  if (snapshot.matches("calling") || snapshot.matches("stopping")) {
    for (const status of ["approving", "cutOff", "running", "queued"] as const) {
      const shown = calls.filter((call) => call.status === status);
      if (shown.length === 0) continue;
      if (status === "cutOff") return unreachable(shown[0]!.host);
      return `${status === "approving" ? status : "calling"}: ${names(shown)}`;
    }
  }
  if (snapshot.matches("reaching") && host !== undefined) return unreachable(host);
  return "thinking";
}

function unreachable(host = ""): string {
  return `unreachable: ${host.replace(/[\s\p{Cc}]+/gu, "_")}`;
}

function names(calls: readonly { name: string }[]): string {
  return [...new Set(calls.map((call) => word(call.name)))].join(", ");
}

/** A tool's name as the model wrote it, which may be anything, as one word of a line. */
function word(name: string): string {
  return name.replace(/[\s,\p{Cc}]+/gu, "_").slice(0, 64);
}

/** A state value as one word: `calling`, `executing.running`. */
export function dotted(value: unknown): string {
  if (typeof value === "string") return value;
  return Object.entries(value as Record<string, unknown>)
    .map(([key, inner]) => `${key}.${dotted(inner)}`)
    .join(" | ");
}

/**
 * The live snapshot without texts, arguments and handles.
 * @param remote the same of the way to the host that its tools run on, where there is one
 */
export function snapshotJson(snapshot: AgentSnapshot, remote?: unknown): string {
  const { attempt, retryAt, calls, host, end } = snapshot.context;
  const view = {
    status: snapshot.status,
    value: snapshot.value,
    context: {
      attempt,
      retryAt: retryAt && new Date(retryAt).toISOString(),
      calls: calls.map(({ id, name, concurrency, status, host }) => ({
        id,
        name,
        concurrency,
        status,
        host,
      })),
      host,
      end: end.how,
    },
    children: Object.fromEntries(
      Object.entries(snapshot.children).map(([id, child]) => {
        const inner = child?.getSnapshot() as AnyMachineSnapshot | undefined;
        return [id, { status: inner?.status, value: inner?.value }];
      }),
    ),
    remote,
  };
  return `${JSON.stringify(view, null, 2)}\n`;
}

/** The statechart as data, in the form that `createMachine` takes back; implementations are names in it. */
export function machineJson(machine: AnyStateMachine): string {
  return `${JSON.stringify(machine.config, null, 2)}\n`;
}

type Target = string | { target?: string; guard?: string | { type: string } } | Target[];

interface Node {
  initial?: string;
  type?: string;
  states?: Record<string, Node>;
  on?: Record<string, Target>;
  after?: Record<string, Target>;
  always?: Target;
  invoke?: { onDone?: Target; onError?: Target };
}

/** The statechart as a Mermaid `stateDiagram-v2`. */
export function machineMermaid(machine: AnyStateMachine): string {
  const root = machine.config as Node;
  const lines = ["stateDiagram-v2"];
  drawInside(root, lines, "  ");
  // The machine itself has no box from which its own arrows could lead.
  for (const [key, { type }] of Object.entries(root.states ?? {}))
    if (type !== "final")
      for (const { to, label } of arrows({ on: root.on })) lines.push(`  ${key} --> ${to}: ${label}`);
  return `${lines.join("\n")}\n`;
}

/** Returns the lines of arrows that lead out: within the box they would draw their target there. */
function drawInside(node: Node, lines: string[], indent: string): string[] {
  const out: string[] = [];
  if (node.initial) lines.push(`${indent}[*] --> ${node.initial}`);
  for (const [key, child] of Object.entries(node.states ?? {})) {
    if (child.states) {
      lines.push(`${indent}state ${key} {`);
      const outside = drawInside(child, lines, `${indent}  `);
      lines.push(`${indent}}`, ...outside.map((line) => `${indent}${line}`));
    }
    for (const { to, label, leaves } of arrows(child))
      if (leaves) out.push(`${key} --> ${to}: ${label}`);
      else lines.push(`${indent}${key} --> ${to}: ${label}`);
    if (child.type === "final") lines.push(`${indent}${key} --> [*]`);
  }
  return out;
}

interface Arrow {
  to: string;
  label: string;
  /** Its target is named by an id, so not a sibling. */
  leaves: boolean;
}

/** Every transition that leaves a node; its label is `event [guard]`. */
function arrows(node: Node): Arrow[] {
  const found: Arrow[] = [];
  const add = (event: string, target: Target | undefined): void => {
    if (target === undefined) return;
    if (Array.isArray(target)) {
      for (const one of target) add(event, one);
      return;
    }
    const { target: to, guard } = typeof target === "string" ? { target, guard: undefined } : target;
    if (!to) return;
    const condition = typeof guard === "string" ? guard : guard?.type;
    const label = `${event}${condition ? ` [${condition}]` : ""}`;
    found.push({ to: to.slice(to.lastIndexOf(".") + 1), label, leaves: to.startsWith("#") });
  };
  for (const [event, target] of Object.entries(node.on ?? {})) add(event, target);
  for (const [delay, target] of Object.entries(node.after ?? {})) add(`after ${delay}`, target);
  add("done", node.invoke?.onDone);
  add("error", node.invoke?.onError);
  add("always", node.always);
  return found;
}
