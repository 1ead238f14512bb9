/** Errors as they cross the wire: the JSON-RPC code, and in `data` what programs branch on. */
import { z } from "zod";
import { CodedFault, Fault, type FaultKind } from "../../fault.ts";

/** `infra`: the way to the host or the host itself is at fault, and the task stops; no model can repair it. */
export const errorData = z.object({
  code: z.string(),
  infra: z.boolean(),
  retry: z.boolean().default(false),
  hint: z.string().optional(),
});

export const wireError = z.object({
  code: z.number(),
  message: z.string(),
  data: errorData.optional(),
});
export type WireError = z.infer<typeof wireError>;

/** JSON-RPC's own codes; everything of ours is an application error. */
export const rpcCodes = {
  parse: -32700,
  invalidRequest: -32600,
  noMethod: -32601,
  invalidParams: -32602,
  application: -32000,
} as const;

/** What the families and their members mean for code that only knows a Fault's kind. */
const kinds: Record<string, FaultKind> = {
  "ssh.auth": "denied",
  "ssh.hostkey_unknown": "denied",
  "ssh.hostkey_changed": "denied",
  "ssh.timeout": "timeout",
  "ssh.config": "invalid",
  "boot.no_space": "full",
  "session.absent": "missing",
  "session.held": "busy",
  "session.policy_broader": "denied",
  "op.unknown": "missing",
  "op.mismatch": "exists",
  "file.escape": "denied",
  "file.symlink": "denied",
  "file.denied": "denied",
  "file.missing": "missing",
  "file.conflict": "exists",
  "file.too_large": "invalid",
  "file.not_utf8": "invalid",
  "file.kind": "invalid",
  "file.name": "invalid",
  "file.not_empty": "invalid",
  "file.full": "full",
};
const families: Record<string, FaultKind> = {
  ssh: "unavailable",
  boot: "unavailable",
  proto: "io",
  caps: "unavailable",
  session: "invalid",
  op: "invalid",
  file: "io",
  policy: "denied",
  sandbox: "unavailable",
};

/** Families that stop a task: the model cannot repair them. */
const infrastructure = new Set(["ssh", "boot", "proto", "caps", "session", "policy", "sandbox"]);

export function coded(
  code: string,
  message: string,
  more: { retry?: boolean; hint?: string } = {},
  options?: { cause?: unknown },
): CodedFault {
  return new CodedFault(kinds[code] ?? families[familyOf(code)] ?? "io", code, message, more, options);
}

export function isInfrastructure(error: unknown): error is CodedFault {
  return error instanceof CodedFault && infrastructure.has(familyOf(error.code));
}

export function toWire(error: unknown): WireError {
  if (error instanceof CodedFault) {
    const { code, message, more } = error;
    return {
      code: rpcCodes.application,
      message,
      data: { code, infra: isInfrastructure(error), retry: more.retry ?? false, hint: more.hint },
    };
  }
  if (error instanceof Fault)
    return {
      code: rpcCodes.application,
      message: error.message,
      data: { code: `host.${error.kind}`, infra: false, retry: false },
    };
  return { code: rpcCodes.application, message: error instanceof Error ? error.message : String(error) };
}

export function fromWire({ message, data }: WireError): Fault {
  if (!data) return new Fault("io", message);
  if (data.code.startsWith("host.")) return new Fault(data.code.slice(5) as FaultKind, message);
  // The hint is in the message already.
  return new CodedFault(kinds[data.code] ?? families[familyOf(data.code)] ?? "io", data.code, message, {
    retry: data.retry,
  });
}

function familyOf(code: string): string {
  return code.slice(0, code.indexOf("."));
}
