/** What can go wrong on the way to another host, in the words of the protocol's family `ssh`. */
import { CodedFault, type FaultKind } from "../fault.ts";
import type { SshCode } from "./transport.ts";

const kinds: Partial<Record<SshCode, FaultKind>> = {
  "ssh.auth": "denied",
  "ssh.hostkey_unknown": "denied",
  "ssh.hostkey_changed": "denied",
  "ssh.timeout": "timeout",
  "ssh.config": "invalid",
};

/** @param more `retry`: it may work by itself later; `hint`: what a user can do about it */
export function sshFault(
  code: SshCode,
  message: string,
  more: { retry?: boolean; hint?: string } = {},
  options?: { cause?: unknown },
): CodedFault {
  return new CodedFault(kinds[code] ?? "unavailable", code, message, more, options);
}

/** Something that ssh2 has no means for and the ssh program may have. `fault` is what a user is told where there is no such program. */
export class Beyond extends Error {
  override readonly name = "Beyond";
  constructor(readonly fault: CodedFault) {
    super(fault.message);
  }
}

/** A system error of a connection that could not be made, `connect(2)` and `getaddrinfo(3)`. */
export function connectFault(error: unknown, place: string): CodedFault {
  const { code = "", message = String(error) } = error as { code?: string; message?: string };
  const options = { cause: error };
  switch (code) {
    case "ECONNREFUSED":
      return sshFault(
        "ssh.refused",
        `nothing accepts connections at ${place}`,
        { retry: true, hint: "is sshd running there, and is the port right?" },
        options,
      );
    case "ECONNRESET":
    case "EPIPE":
      return overloaded(place, options);
    case "ENOTFOUND":
    case "EAI_AGAIN":
    case "EAI_NONAME":
    case "DNS_ENOTFOUND":
      return sshFault(
        "ssh.unreachable",
        `there is no address for ${place}`,
        { retry: true, hint: "is the name spelled right (a Host of ~/.ssh/config or a name that resolves)?" },
        options,
      );
    case "ETIMEDOUT":
      return sshFault("ssh.timeout", `${place} does not answer`, { retry: true }, options);
    default:
      return sshFault("ssh.unreachable", `no way to ${place}: ${message}`, { retry: true }, options);
  }
}

/** sshd hangs up before a word is said when too many are logging in (`MaxStartups`, `PerSourcePenalties`). */
export function overloaded(place: string, options?: { cause?: unknown }): CodedFault {
  return sshFault(
    "ssh.refused",
    `${place} hung up before it said anything`,
    {
      retry: true,
      hint: "sshd does that when many log in at once (MaxStartups), so it is worth another try",
    },
    options,
  );
}
