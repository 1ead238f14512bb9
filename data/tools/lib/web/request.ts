/** Asking a web server: redirects followed one by one, each checked, and errors in words. */
import { lookup } from "node:dns/promises";
import { literal, type Place, placeOf, placeOfName } from "./addresses.ts";
import type { ProxyFor } from "./proxy.ts";

const mostRedirects = 10;
const headers = {
  "user-agent": "Mozilla/5.0 (compatible; ollie web_fetch)",
  accept: "text/html, application/xhtml+xml, text/markdown, text/plain, application/json;q=0.9, */*;q=0.5",
};

export interface Answer {
  response: Response;
  /** Where it came from in the end. */
  url: URL;
  /** The addresses that led there, if there were redirects. */
  hops: URL[];
  /** Milliseconds that all of it may take, the content included. */
  patience: number;
}

export interface Asking {
  proxyFor: ProxyFor;
  patience: number;
  /** All addresses of a name; for tests. */
  resolve?(name: string): Promise<string[]>;
}

/** `localhost:3000` has none: what follows the colon is a port. */
const hasScheme = /^[a-z][a-z\d+.-]*:(?!\d+(?:\/|$))/i;

/** Servers at home rarely have a certificate. */
function withScheme(bare: string): string {
  const url = URL.parse(`http://${bare}`);
  return url && placeOfName(url.hostname) === "private" ? url.href : `https://${bare}`;
}

/** @throws with a reason for people if the text is no address that can be fetched */
export function parseUrl(text: string, base?: URL): URL {
  const bare = text.trim();
  const url = base ? URL.parse(bare, base.href) : URL.parse(hasScheme.test(bare) ? bare : withScheme(bare));
  if (!url) throw new Error(`${JSON.stringify(text)} is no URL: it should be like https://example.org/page`);
  if (url.protocol !== "http:" && url.protocol !== "https:")
    throw new Error(`${url.protocol} cannot be fetched: only http: and https:`);
  if (url.username || url.password)
    throw new Error(`${url.host}: a URL with a user or password in it is not fetched`);
  url.hash = "";
  return url;
}

/** @throws where no answer came, with the reason; an answer such as 404 is an answer */
export async function ask(start: URL, asking: Asking): Promise<Answer> {
  const hops: URL[] = [];
  const { patience } = asking;
  const signal = AbortSignal.timeout(patience);
  let from: Place = "private";
  for (let url = start; ; ) {
    const { addresses, place } = await placesOf(url, asking);
    if (place === "forbidden")
      throw new Error(`${url.host} is not fetched: at its address clouds hand out credentials`);
    if (place === "private" && from === "public")
      throw new Error(
        `${hops.at(-1)!.href} redirects to ${url.href}, which is inside of the user's network: not followed. Fetch it by itself if that is what you want`,
      );
    from = place;
    const response = await send(url, addresses, asking, signal);
    const location = response.headers.get("location");
    if (![301, 302, 303, 307, 308].includes(response.status) || location === null)
      return { response, url, hops, patience };
    await response.body?.cancel();
    hops.push(url);
    if (hops.length > mostRedirects)
      throw new Error(
        `more than ${mostRedirects} redirects, the last from ${url.href} to ${location}: they probably go in a circle`,
      );
    url = parseUrl(location, url);
  }
}

/** The worst place of all addresses; none are given where a proxy will find them. */
async function placesOf(url: URL, asking: Asking): Promise<{ addresses: string[]; place: Place }> {
  const named = placeOfName(url.hostname);
  const address = literal(url.hostname);
  if (address || named === "forbidden" || asking.proxyFor(url)) return { addresses: [], place: named };
  const addresses = await (asking.resolve ?? resolveName)(url.hostname);
  const places = addresses.map(placeOf);
  const place = (["forbidden", "private"] as const).find((one) => places.includes(one)) ?? "public";
  return { addresses, place };
}

async function resolveName(name: string): Promise<string[]> {
  try {
    const found = await lookup(name, { all: true, order: "ipv4first" });
    return found.map(({ address }) => address);
  } catch (error) {
    const code = (error as NodeJS.ErrnoException).code ?? "";
    if (code === "ENOTFOUND" || code === "ENODATA") throw new Error(`there is no host ${name}`);
    throw new Error(
      `the name ${name} could not be resolved (${code}): no name server answers, or the sandbox allows no network`,
    );
  }
}

/** To one of the addresses that were checked, and no other: asked again, a name might lead elsewhere. */
async function send(url: URL, addresses: string[], asking: Asking, signal: AbortSignal): Promise<Response> {
  const proxy = asking.proxyFor(url);
  const options = { redirect: "manual", signal, keepalive: false } as const;
  let failure: unknown;
  for (const address of addresses.length > 0 ? addresses : [undefined]) {
    const target = new URL(url);
    if (address) target.hostname = address.includes(":") ? `[${address}]` : address;
    try {
      return await fetch(target.href, {
        ...options,
        headers: { ...headers, ...(address && { host: url.host }) },
        ...(proxy && { proxy }),
        ...(address && { tls: { serverName: url.hostname } }),
      });
    } catch (error) {
      failure = error;
      if (signal.aborted || !isUnreachable(error)) break;
    }
  }
  throw explained(failure, url, asking.patience, proxy);
}

function isUnreachable(error: unknown): boolean {
  return /^(?:ECONNREFUSED|ConnectionRefused|EHOSTUNREACH|ENETUNREACH|FailedToOpenSocket)$/.test(
    codeOf(error),
  );
}

/** An error of `fetch` in words. @param proxy which was asked in the server's place */
export function explained(error: unknown, url: URL, patience: number, proxy?: string): Error {
  const code = codeOf(error);
  const host = proxy ? `the proxy ${URL.parse(proxy)?.host ?? proxy}` : url.host;
  if (code === "TimeoutError")
    return new Error(`${url.href}: no complete answer within ${patience / 1000} s`);
  if (/REFUSED|Refused/.test(code)) return new Error(`${host} refuses the connection: nothing listens there`);
  if (/UNREACH|FailedToOpenSocket/.test(code))
    return new Error(`${host} cannot be reached (${code}), or the sandbox allows no network`);
  if (code === "CERT_HAS_EXPIRED") return new Error(`the certificate of ${url.host} has expired`);
  if (code === "ERR_TLS_CERT_ALTNAME_INVALID")
    return new Error(`the certificate of ${url.host} is for another name`);
  if (/CERT|ISSUER|SIGNATURE|SIGNED/i.test(code))
    return new Error(`the certificate of ${url.host} cannot be verified (${code})`);
  if (/SSL|TLS|EPROTO/i.test(code)) return new Error(`no TLS connection with ${url.host} (${code})`);
  if (/RESET|Closed|EPIPE|ABORTED/.test(code))
    return new Error(`${host} closed the connection before its answer was complete`);
  const words = error instanceof Error ? error.message : String(error);
  return new Error(
    `${url.href} could not be fetched: ${code && !words.includes(code) ? `${code}: ` : ""}${words}`,
  );
}

function codeOf(error: unknown): string {
  const { code, name } = error as { code?: unknown; name?: unknown };
  return typeof code === "string" ? code : typeof name === "string" && name !== "Error" ? name : "";
}
