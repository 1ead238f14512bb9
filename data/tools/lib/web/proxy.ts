/** The proxies that the environment names, read as curl does. */

/** Gives a URL's proxy; undefined = it is asked directly. */
export type ProxyFor = (url: URL) => string | undefined;

const names = ["http_proxy", "https_proxy", "all_proxy", "no_proxy"];

/**
 * Takes the variables out of the environment: what is left there, `fetch` obeys on its own, and a request that was to go to a certain
 * address would go elsewhere.
 * @throws where a proxy is of a kind that cannot be used
 */
export function takeProxies(environment: Record<string, string | undefined>): ProxyFor {
  const [http, https, all, no] = names.map((name) => environment[name] || environment[name.toUpperCase()]);
  for (const name of names) {
    delete environment[name];
    delete environment[name.toUpperCase()];
  }
  const excepted = exceptions(no ?? "");
  return (url) => {
    const proxy = (url.protocol === "https:" ? https : http) || all;
    if (!proxy || excepted(url)) return undefined;
    const address = /^\w+:\/\//.test(proxy) ? proxy : `http://${proxy}`;
    if (!/^https?:/.test(address))
      throw new Error(`the proxy ${withoutPassword(address)} is no http proxy: only those can be used`);
    return address;
  };
}

/** no_proxy: names with all below them, addresses, `*`; each may have a port. */
function exceptions(list: string): (url: URL) => boolean {
  const entries = list
    .toLowerCase()
    .split(/[\s,]+/)
    .filter(Boolean);
  return (url) => {
    const host = url.hostname.replace(/^\[(.*)\]$/, "$1");
    const port = url.port || (url.protocol === "https:" ? "443" : "80");
    return entries.some((entry) => {
      const [, name, itsPort] = /^\[?(.*?)\]?(?::(\d+))?$/.exec(entry)!;
      const plain = entry.split(":").length > 2 ? entry.replace(/[[\]]/g, "") : name!.replace(/^\*?\./, "");
      if (plain === "*") return true;
      if (itsPort && entry.split(":").length === 2 && itsPort !== port) return false;
      return host === plain || host.endsWith(`.${plain}`);
    });
  };
}

function withoutPassword(address: string): string {
  const url = URL.parse(address);
  return url ? `${url.protocol}//${url.host}` : "that is set";
}
