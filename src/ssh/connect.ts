/** The one way to another host: ssh2 in this process, or the ssh program for what ssh2 cannot do. */
import { findProgram } from "./config/program.ts";
import { resolveRoute, type Settings } from "./config/settings.ts";
import { Beyond, sshFault } from "./fault.ts";
import type { Askpass, Connect, SshConnection, SshTarget } from "./transport.ts";

export const connect: Connect = async (target, askpass, signal) => {
  signal.throwIfAborted();
  const settings = await resolveRoute(target, signal);
  const program = target.via === "ssh2" ? undefined : findProgram(target.sshProgram);
  if (target.via === "openssh" || (program !== undefined && settings.programOnly !== undefined))
    return byProgram(target, settings, askpass, program, signal);
  // Loaded when it is needed: it takes a server without other hosts nothing.
  const { connectSsh2 } = await import("./ssh2/connect.ts");
  try {
    const attempt = { target, settings, people: askpass, program: program !== undefined, signal };
    return await connectSsh2(attempt);
  } catch (error) {
    if (!(error instanceof Beyond)) throw error;
    if (program === undefined) throw error.fault;
    return byProgram(target, settings, askpass, program, signal);
  }
};

async function byProgram(
  target: SshTarget,
  settings: Settings,
  askpass: Askpass | undefined,
  program: string | undefined,
  signal: AbortSignal,
): Promise<SshConnection> {
  if (program === undefined)
    throw sshFault("ssh.config", "there is no ssh program on the PATH", {
      hint: "install openssh-client, or let ollie use its own SSH",
    });
  const { connectOpenssh } = await import("./openssh/connect.ts");
  const borrow = target.via === "auto";
  return connectOpenssh({ target, settings, people: askpass, program, borrow, signal });
}
