/** Counters of a server, shown as Prometheus text (exposition format 0.0.4). */

export class Counters {
  turns = 0;
  requests = 0;
  toolCalls = 0;
  tokensIn = 0;
  tokensOut = 0;
}

/** What is counted elsewhere and read when somebody asks. */
export interface Gauges {
  sessions: number;
  agents: number;
  busy: number;
  queued: number;
  /** Background jobs that run. */
  jobs: number;
  /** Sessions whose tools run on another host, by the state of the way there. */
  remotes: Record<string, number>;
  /** 9P requests by type, since the start. */
  ops: Record<string, number>;
  connections: number;
}

export function metricsText(counters: Counters, gauges: Gauges): string {
  const lines: string[] = [];
  const metric = (name: string, type: string, help: string, samples: [labels: string, value: number][]) => {
    lines.push(`# HELP ollie_${name} ${help}`, `# TYPE ollie_${name} ${type}`);
    for (const [labels, value] of samples) lines.push(`ollie_${name}${labels} ${value}`);
  };
  metric("sessions", "gauge", "Sessions.", [["", gauges.sessions]]);
  metric("agents", "gauge", "Agents.", [["", gauges.agents]]);
  metric("agents_busy", "gauge", "Agents that are not idle.", [["", gauges.busy]]);
  metric("queue_depth", "gauge", "Texts that wait in queues.", [["", gauges.queued]]);
  metric("jobs_running", "gauge", "Background jobs that run.", [["", gauges.jobs]]);
  metric(
    "remotes",
    "gauge",
    "Sessions on other hosts, by the state of the way there.",
    Object.entries(gauges.remotes).map(([state, n]) => [`{state="${state}"}`, n]),
  );
  metric("turns_total", "counter", "Turns begun.", [["", counters.turns]]);
  metric("model_requests_total", "counter", "Requests sent to model providers.", [["", counters.requests]]);
  metric("tokens_total", "counter", "Tokens as providers report them.", [
    ['{direction="in"}', counters.tokensIn],
    ['{direction="out"}', counters.tokensOut],
  ]);
  metric("tool_calls_total", "counter", "Tool calls run.", [["", counters.toolCalls]]);
  metric("9p_connections", "gauge", "Open 9P connections.", [["", gauges.connections]]);
  metric(
    "9p_requests_total",
    "counter",
    "9P requests by type.",
    Object.entries(gauges.ops).map(([type, n]) => [`{type="${type}"}`, n]),
  );
  return `${lines.join("\n")}\n`;
}
