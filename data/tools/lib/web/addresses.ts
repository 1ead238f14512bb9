/**
 * Which machines may be asked. The user's own are allowed when the agent names them, for a server under development is what an agent
 * looks at most; but an answer from outside must not lead there, and the addresses at which clouds hand out a machine's credentials are
 * never asked.
 */
import { BlockList, isIP } from "node:net";

export type Place = "public" | "private" | "forbidden";

const forbidden = blockList(
  // Link-local: metadata of AWS, Azure, Google, DigitalOcean, OpenStack and others.
  "169.254.0.0/16",
  "fe80::/10",
  // The same where it is elsewhere: AWS over IPv6, Alibaba, Azure, Oracle.
  "fd00:ec2::/32",
  "100.100.100.200/32",
  "168.63.129.16/32",
  "192.0.0.192/32",
  // Many machines at once.
  "224.0.0.0/4",
  "255.255.255.255/32",
  "ff00::/8",
);

const own = blockList(
  "0.0.0.0/8",
  "10.0.0.0/8",
  "100.64.0.0/10",
  "127.0.0.0/8",
  "172.16.0.0/12",
  "192.0.0.0/24",
  "192.168.0.0/16",
  "198.18.0.0/15",
  "::/127",
  "fc00::/7",
);

/** Names of metadata servers, for where a proxy resolves them. */
const forbiddenNames = /^(?:metadata|metadata\.google\.internal|instance-data(?:\.ec2\.internal)?)\.?$/i;

/** @param address an IP address */
export function placeOf(address: string): Place {
  const plain = embedded(address) ?? address;
  const family = isIP(plain) === 6 ? "ipv6" : "ipv4";
  if (forbidden.check(plain, family)) return "forbidden";
  return own.check(plain, family) ? "private" : "public";
}

/** @param host of a URL: a name or an address, IPv6 in brackets */
export function placeOfName(host: string): Place {
  const address = literal(host);
  if (address) return placeOf(address);
  if (forbiddenNames.test(host)) return "forbidden";
  return /(?:^|\.)localhost\.?$/i.test(host) ? "private" : "public";
}

/** The address that a URL's host is, if it is one. */
export function literal(host: string): string | undefined {
  const bare = host.replace(/^\[(.*)\]$/, "$1");
  return isIP(bare) > 0 ? bare : undefined;
}

/** The IPv4 address inside of an IPv6 one: mapped (::ffff:0:0/96), compatible (::/96), or behind NAT64 (64:ff9b::/96). */
function embedded(address: string): string | undefined {
  if (isIP(address) !== 6) return undefined;
  // As URLs write it: shortest, all in hexadecimal.
  const text = new URL(`http://[${address.replace(/%.*$/, "")}]`).hostname.slice(1, -1);
  const match = /^(?:::ffff:|::|64:ff9b::)([\da-f]{1,4}):([\da-f]{1,4})$/.exec(text);
  if (!match) return undefined;
  const [high, low] = [Number.parseInt(match[1]!, 16), Number.parseInt(match[2]!, 16)];
  return [high >> 8, high & 255, low >> 8, low & 255].join(".");
}

function blockList(...nets: string[]): BlockList {
  const list = new BlockList();
  for (const net of nets) {
    const [address, bits] = net.split("/");
    list.addSubnet(address!, Number(bits), address!.includes(":") ? "ipv6" : "ipv4");
  }
  return list;
}
