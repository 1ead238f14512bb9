/** What there is to say of this host's sandbox, to people. */
import type { HostConfinement } from "./launch/launcher.ts";

const guards: Record<HostConfinement["sockets"], string> = {
  namespace: "hidden by a mount namespace",
  landlock: "denied by Landlock",
  seccomp: "denied altogether by seccomp",
  none: "open to tools",
};

/** Lines of `version`: whether tools are confined, by which Landlock, what keeps them from other programs' sockets, what is missing. */
export function confinementText({ state, landlock, sockets, missing, reasons }: HostConfinement): string {
  const lines = [
    `sandbox: ${state}`,
    `landlock: ${landlock === 0 ? "none" : `ABI ${landlock}`}`,
    `sockets: ${guards[sockets]}`,
    ...missing.map((what) => `tools can: ${what}`),
    ...reasons.map((why) => `because: ${why}`),
  ];
  return `${lines.join("\n")}\n`;
}

/** For the log of a server that starts. */
export function shortcomings({ state, missing, reasons }: HostConfinement): string[] {
  if (state === "enforced") return [];
  const why = reasons.length > 0 ? ` (${reasons.join("; ")})` : "";
  return [`sandbox: ${state}; tools can: ${missing.join(", ")}${why}`];
}
