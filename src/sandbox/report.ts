/** What there is to say of this host's sandbox, to people. */
import type { HostConfinement } from "./launch/launcher.ts";

const guards: Record<HostConfinement["sockets"], string> = {
  namespace: "hidden by a mount namespace",
  landlock: "denied by Landlock",
  seccomp: "denied altogether by seccomp",
  none: "open to tools",
};

/** Lines of `version`: whether tools are confined, by which Landlock, what keeps them from other programs' sockets, what is missing. */
export function confinementText(confinement: HostConfinement): string {
  const { state, sockets, missing, reasons } = confinement;
  const lines = [
    `sandbox: ${state}`,
    `landlock: ${abiOf(confinement)}`,
    `sockets: ${guards[sockets]}`,
    ...missing.map((what) => `tools can: ${what}`),
    ...reasons.map((why) => `because: ${why}`),
  ];
  return `${lines.join("\n")}\n`;
}

/** The same in one line. */
export function confinementLine(confinement: HostConfinement): string {
  const { state, sockets, missing, reasons } = confinement;
  if (state === "enforced") return `enforced: Landlock ${abiOf(confinement)}, sockets ${guards[sockets]}`;
  const why = reasons.length > 0 ? ` (${reasons.join("; ")})` : "";
  return `${state}; tools can: ${missing.join(", ")}${why}`;
}

/** For the log of a server that starts. */
export function shortcomings(confinement: HostConfinement): string[] {
  return confinement.state === "enforced" ? [] : [`sandbox: ${confinementLine(confinement)}`];
}

function abiOf({ landlock }: HostConfinement): string {
  return landlock === 0 ? "none" : `ABI ${landlock}`;
}
