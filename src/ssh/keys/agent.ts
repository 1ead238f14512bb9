/** The agent, draft-ietf-sshm-ssh-agent: which keys it has, and signatures by them. */
import { connect } from "node:net";
import ssh2 from "ssh2";

export interface AgentKey {
  blob: Buffer;
  comment: string;
}

const SSH_AGENTC_REQUEST_IDENTITIES = 11;
const SSH_AGENT_IDENTITIES_ANSWER = 12;
/** Longer answers are none. Bytes. */
const longest = 1 << 20;

/**
 * All keys, also those that ssh2 has no name for: they tell that the ssh program may get in.
 * @throws Error where nothing answers as an agent does, or the signal says that it has been waited for long enough
 */
export async function agentKeys(path: string, signal: AbortSignal): Promise<AgentKey[]> {
  const answer = await ask(path, Buffer.from([0, 0, 0, 1, SSH_AGENTC_REQUEST_IDENTITIES]), signal);
  if (answer[0] !== SSH_AGENT_IDENTITIES_ANSWER) throw new Error("the agent does not tell its keys");
  let at = 1;
  const number = () => {
    at += 4;
    return answer.readUInt32BE(at - 4);
  };
  const string = () => {
    const length = number();
    if (at + length > answer.length) throw new Error("the agent's answer is cut off");
    at += length;
    return answer.subarray(at - length, at);
  };
  return Array.from({ length: number() }, () => ({ blob: string(), comment: string().toString() }));
}

/** A signature, in the form that ssh2 wants. */
export function agentSign(
  path: string,
  key: ssh2.ParsedKey,
  data: Buffer,
  hash: "sha256" | "sha512" | undefined,
): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    new ssh2.OpenSSHAgent(path).sign(key, data, { hash }, (error, signature) => {
      if (signature) resolve(signature);
      else reject(error ?? new Error("the agent does not sign"));
    });
  });
}

/** One request, one answer without its length. */
function ask(path: string, request: Buffer, signal: AbortSignal): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    const socket = connect(path);
    let got = Buffer.alloc(0);
    const end = (error?: Error, answer?: Buffer) => {
      signal.removeEventListener("abort", abort);
      socket.destroy();
      if (answer) resolve(answer);
      else reject(error ?? new Error("the agent hung up"));
    };
    const abort = () => end(new Error("the agent does not answer"));
    signal.addEventListener("abort", abort);
    socket.on("connect", () => socket.write(request));
    socket.on("error", end);
    socket.on("close", () => end());
    socket.on("data", (bytes: Buffer) => {
      got = Buffer.concat([got, bytes]);
      if (got.length < 4) return;
      const length = got.readUInt32BE(0);
      if (length > longest) end(new Error("that is no agent"));
      else if (got.length >= 4 + length) end(undefined, got.subarray(4, 4 + length));
    });
    if (signal.aborted) abort();
  });
}
