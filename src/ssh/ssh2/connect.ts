/** SSH in this process, by ssh2. */
import ssh2 from "ssh2";
import { CodedFault } from "../../fault.ts";
import { resolve, type Settings } from "../config/settings.ts";
import { Deadline } from "../deadline.ts";
import { Beyond, connectFault, overloaded, sshFault } from "../fault.ts";
import type { Unlocking } from "../keys/identity.ts";
import { HostKeys, policyOf } from "../known/check.ts";
import { fingerprint } from "../known/file.ts";
import type { Askpass, SshTarget } from "../transport.ts";
import { Ssh2Connection } from "./connection.ts";
import { type Carrier, dial, runProxy } from "./dial.ts";
import { Login } from "./login.ts";

/** What is offered; everything that ssh2 does quickly in Bun. */
const exchanges: ssh2.KexAlgorithm[] = [
  "curve25519-sha256",
  "curve25519-sha256@libssh.org",
  "ecdh-sha2-nistp256",
  "ecdh-sha2-nistp384",
  "ecdh-sha2-nistp521",
];
/** In finite fields: 0.6 to 7 s each, in which this process does nothing else. */
const slowExchanges: ssh2.KexAlgorithm[] = [
  "diffie-hellman-group14-sha256",
  "diffie-hellman-group-exchange-sha256",
  "diffie-hellman-group16-sha512",
];
const ciphers: ssh2.CipherAlgorithm[] = [
  "aes128-gcm@openssh.com",
  "aes256-gcm@openssh.com",
  "aes128-ctr",
  "aes192-ctr",
  "aes256-ctr",
];
/** After this long something is said of what is waited for. Milliseconds. */
const noticed = 1000;
/** For a touch or a click; sshd itself gives two minutes to log in. Milliseconds. */
const patience = 120_000;

export interface Attempt {
  target: SshTarget;
  settings: Settings;
  people: Askpass | undefined;
  /** There is an ssh program that can take over: nothing slow is tried. */
  program: boolean;
  signal: AbortSignal;
}

/** @throws Fault of the family `ssh`; Beyond where the ssh program may do better */
export async function connectSsh2(attempt: Attempt): Promise<Ssh2Connection> {
  const { target, settings } = attempt;
  const limit = Math.min(target.connectTimeout, settings.connectTimeout ?? Number.POSITIVE_INFINITY);
  const late = new AbortController();
  const place = placeOf(settings);
  const deadline = new Deadline(limit, () =>
    late.abort(
      sshFault("ssh.timeout", `${place} does not answer within ${limit / 1000} s`, {
        retry: true,
        hint: "is the host up, and does a firewall let the port through?",
      }),
    ),
  );
  const signal = AbortSignal.any([attempt.signal, late.signal]);
  let carrier: Carrier | undefined;
  try {
    const hosts = new HostKeys(settings, policyOf(target, settings.strict), attempt.people);
    carrier = await carry({ ...attempt, signal }, deadline);
    return await shakeHands({ ...attempt, signal }, carrier, hosts, deadline, limit);
  } catch (error) {
    carrier?.close();
    throw error;
  } finally {
    deadline.end();
  }
}

function placeOf({ host, port }: Settings): string {
  return port === 22 ? host : `${host} port ${port}`;
}

async function carry(attempt: Attempt, deadline: Deadline): Promise<Carrier> {
  const { settings, signal } = attempt;
  if (settings.jumps.length > 0) {
    // Its time is its own; ours goes on afterwards.
    const hop = await deadline.during(connectHop(attempt));
    try {
      const stream = await hop.forward(settings.host, settings.port);
      hop.closed.then(() => stream.destroy());
      return { stream, close: () => hop.close() };
    } catch (error) {
      hop.close();
      throw error;
    }
  }
  if (settings.proxyCommand !== undefined) return runProxy(settings.proxyCommand);
  return dial(settings, signal);
}

/** The last of the hosts to go through: the others lead to it. */
async function connectHop(attempt: Attempt): Promise<Ssh2Connection> {
  const { target, settings, signal } = attempt;
  const name = settings.jumps.at(-1)!;
  const hopTarget = { ...target, name };
  const own = await resolve(hopTarget, signal);
  if (own.programOnly !== undefined && attempt.program)
    throw new Beyond(sshFault("ssh.config", `${name} needs the ssh program: ${own.programOnly}`));
  const before = settings.jumps.slice(0, -1);
  return connectSsh2({
    ...attempt,
    target: hopTarget,
    settings: before.length > 0 ? { ...own, jumps: before, proxyCommand: undefined } : own,
  });
}

function shakeHands(
  { target, settings, people, program, signal }: Attempt,
  carrier: Carrier,
  hosts: HostKeys,
  deadline: Deadline,
  limit: number,
): Promise<Ssh2Connection> {
  const place = placeOf(settings);
  const answering = target.batch ? undefined : people;
  const login = new Login(settings, place, answering, unlocking(answering, place, deadline, signal), program);
  const client = new ssh2.Client();
  return new Promise((done, fail) => {
    let hostKey = "";
    /** What a callback found out, which ssh2 has no words for. */
    let found: unknown;
    let settled = false;
    const end = (error: unknown) => {
      if (settled) return;
      settled = true;
      signal.removeEventListener("abort", abort);
      client.removeAllListeners();
      client.on("error", () => {});
      client.destroy();
      fail(error);
    };
    const abort = () => end(signal.reason);
    signal.addEventListener("abort", abort);
    client.on("error", (error: Error & { level?: string }) => {
      if (error.level === "agent") return;
      end(found ?? login.fault ?? faultOf(error, place, carrier, login));
    });
    const hungUp = () => end(found ?? login.fault ?? faultOf(undefined, place, carrier, login));
    client.on("end", hungUp);
    client.on("close", hungUp);
    login.onDeclined = () => end(login.refused());
    client.on("change password", () =>
      end(
        sshFault("ssh.auth", `${place} wants a new password for ${settings.user}`, {
          hint: `log in once with: ssh ${settings.destination.host}`,
        }),
      ),
    );
    client.on("banner", (text) => people?.notice(text));
    client.on("ready", () => {
      if (settled) return;
      settled = true;
      signal.removeEventListener("abort", abort);
      client.removeAllListeners();
      done(new Ssh2Connection(client, carrier.stream, hostKey, place, limit, () => carrier.close()));
    });
    if (signal.aborted) return abort();
    client.connect({
      sock: carrier.stream,
      username: settings.user,
      readyTimeout: 0, // our own deadline, which people's time does not count for
      keepaliveInterval: settings.alive.interval,
      keepaliveCountMax: settings.alive.count,
      algorithms: {
        kex: program ? exchanges : [...exchanges, ...slowExchanges],
        cipher: ciphers,
        serverHostKey: hosts.algorithms as ssh2.ServerHostKeyAlgorithm[],
        compress: settings.compression ? ["zlib@openssh.com", "none"] : ["none", "zlib@openssh.com"],
      },
      hostVerifier: (key: Buffer, verify: (valid: boolean) => void) => {
        hostKey = fingerprint(key);
        deadline.during(hosts.check(key)).then(
          () => verify(true),
          (error) => {
            found = error;
            verify(false);
          },
        );
      },
      authHandler: login.handler as ssh2.AuthHandlerMiddleware,
    });
  });
}

function unlocking(
  people: Askpass | undefined,
  target: string,
  deadline: Deadline,
  signal: AbortSignal,
): Unlocking {
  return {
    signal,
    passphrase: async (prompt) => people && deadline.during(people.secret(prompt, { target, echo: false })),
    async waiting(work, notice) {
      const told = notice === undefined ? undefined : setTimeout(() => people?.notice(notice), noticed);
      const late = Promise.withResolvers<never>();
      const timer = setTimeout(() => late.reject(new Error("nobody answered in time")), patience);
      try {
        return await deadline.during(Promise.race([work, late.promise]));
      } finally {
        clearTimeout(told);
        clearTimeout(timer);
      }
    },
  };
}

function faultOf(
  error: (Error & { level?: string; code?: unknown }) | undefined,
  place: string,
  carrier: Carrier,
  login: Login,
): CodedFault | Beyond {
  const options = { cause: error };
  if (error instanceof CodedFault) return error;
  if (error?.level === "client-authentication") return login.refused();
  const message = error?.message ?? "";
  const proxy = carrier.reason?.();
  if (proxy)
    return sshFault(
      "ssh.unreachable",
      `the ProxyCommand for ${place} has ended: ${proxy}`,
      { retry: true },
      options,
    );
  if (/no matching|unsupported/i.test(message))
    return new Beyond(
      sshFault(
        "ssh.config",
        `${place} offers only algorithms that ssh2 lacks: ${message.replace("Handshake failed: ", "")}`,
        { hint: "install the ssh program (openssh-client), which ollie then uses by itself" },
        options,
      ),
    );
  if (/too many authentication/i.test(message))
    return sshFault(
      "ssh.auth",
      `${place} wants no more tries: ${message}`,
      { hint: "IdentitiesOnly yes with an IdentityFile in ~/.ssh/config offers the right key only" },
      options,
    );
  if (login.started) {
    return sshFault(
      "ssh.dropped",
      `${place} hung up during the login${message && `: ${message}`}`,
      { retry: true },
      options,
    );
  }
  if (error?.level === "client-socket" && error.code) return connectFault(error, place);
  if (error === undefined || /before handshake|ECONNRESET/i.test(message)) return overloaded(place, options);
  return sshFault("ssh.refused", `${place} cannot be talked to: ${message}`, { retry: true }, options);
}
