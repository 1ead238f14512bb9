/** The environment of a tool: of the server's own only what is listed here. */
import { join } from "node:path";
import { isOwnKey } from "../config/secrets.ts";
import type { Cage } from "../sandbox/cage.ts";
import type { CallContext, Tool } from "./tool.ts";

/** What a tool has from the server's environment: where things are and how they are written, no secrets, no sockets. */
const inherited =
  /^(?:PATH|HOME|USER|LOGNAME|SHELL|LANG|LANGUAGE|LC_\w+|TZ|XDG_(?:CACHE|CONFIG|DATA|STATE)_HOME|(?:https?|no|all)_proxy|(?:HTTPS?|NO|ALL)_PROXY|SSL_CERT_(?:FILE|DIR)|DISPLAY|WAYLAND_DISPLAY|XDG_RUNTIME_DIR)$/;
/** How a program gets at the user's desktop: for calls that somebody has let out of the sandbox. */
const desktop = /^(?:XAUTHORITY|DBUS_SESSION_BUS_ADDRESS)$/;
/** Bytes up to which an argument is also a variable. */
const argumentLimit = 4096;

/** Folder for temporary files: private to the session, and apart from what ollie keeps there itself. */
export function temporaryFolder(ctx: CallContext): string {
  return join(ctx.tmp, "tmp");
}

/** From the weakest to the strongest: the server's, the session's, the call's own. */
export function callEnvironment(
  tool: Tool,
  args: Record<string, unknown>,
  ctx: CallContext,
  callId: string,
  cage?: Cage,
): Record<string, string> {
  return {
    ...sessionEnvironment(ctx, cage),
    ...pick(argumentVariables(args), () => true),
    OLLIE_TOOL: tool.name,
    OLLIE_CALL_ID: callId,
    OLLIE_SESSION: ctx.session,
    OLLIE_AGENT: ctx.agent,
    ...addressVariables(ctx, cage),
  };
}

function addressVariables(ctx: CallContext, cage: Cage | undefined): Record<string, string> {
  if (!ctx.address) return {};
  const { addr, token } = ctx.address(cage?.noUnixSockets ? "tcp" : "unix");
  return { OLLIE_ADDR: addr, ...(token && { OLLIE_TOKEN: token }) };
}

/** What all calls in a folder have in common: the environment of a service, which is no single call's. */
export function sessionEnvironment(ctx: CallContext, cage?: Cage): Record<string, string> {
  const allowed = (name: string) => !isOwnKey(name) && (cage ? cage.allows(name) : desktop.test(name));
  return {
    PATH: "/usr/local/bin:/usr/bin:/bin",
    ...pick(process.env, (name) => inherited.test(name) || allowed(name)),
    // A session's env may hold keys of providers by mistake.
    ...pick(ctx.env, (name) => !isOwnKey(name)),
    PWD: ctx.cwd,
    TMPDIR: temporaryFolder(ctx),
    OLLIE_CWD: ctx.cwd,
    OLLIE_TOOLS_PATH: ctx.toolsPath,
    OLLIE_MEMORY_PATH: ctx.memoryPath,
    OLLIE_SKILLS_PATH: ctx.skillsPath,
    OLLIE_TMP: temporaryFolder(ctx),
  };
}

/** `OLLIE_ARG_<NAME>` for every scalar at the top, so that a shell tool needs no JSON parser. A NUL cannot be in a variable. */
function argumentVariables(args: Record<string, unknown>): Record<string, string> {
  const variables: Record<string, string> = {};
  for (const [name, value] of Object.entries(args)) {
    if (!["string", "number", "boolean"].includes(typeof value)) continue;
    const text = String(value);
    if (Buffer.byteLength(text) > argumentLimit || text.includes("\0")) continue;
    variables[`OLLIE_ARG_${name.toUpperCase().replace(/[^A-Z0-9]/g, "_")}`] = text;
  }
  return variables;
}

function pick(
  env: Record<string, string | undefined>,
  wanted: (name: string) => boolean,
): Record<string, string> {
  const entries = Object.entries(env).filter(([name, value]) => value !== undefined && wanted(name));
  return Object.fromEntries(entries) as Record<string, string>;
}
