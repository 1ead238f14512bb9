/** What in a program's output looks like a denial: which kind, and which paths or addresses it may be about. */

export type Denial = "denied" | "forbidden" | "readonly" | "busy" | "crossing" | "missing" | "network";

/** How the kernel's refusals are put into words: by libc, Node, Python, Rust, Go, Java and Git. In this order. */
const kinds: [Denial, RegExp][] = [
  ["crossing", /Invalid cross-device link|\bEXDEV\b|cross-device link|\[Errno 18\]|\(os error 18\)/i],
  ["readonly", /Read-only file system|\bEROFS\b|\[Errno 30\]|\(os error 30\)/i],
  ["busy", /Device or resource busy|\bEBUSY\b|\[Errno 16\]|\(os error 16\)/i],
  ["denied", /Permission denied|\bEACCES\b|AccessDeniedException|\[Errno 13\]|\(os error 13\)/i],
  ["forbidden", /Operation not permitted|\bEPERM\b|\[Errno 1\]|\(os error 1\)/i],
  [
    "missing",
    /No such file or directory|\bENOENT\b|NoSuchFileException|\(os error 2\)|cannot find the path/i,
  ],
  [
    "network",
    /Could not resolve host|Temporary failure in name resolution|Name or service not known|\bEAI_AGAIN\b|\bENOTFOUND\b|Network is unreachable|\bENETUNREACH\b|Failed to connect to .* port \d+ after/i,
  ],
];

/** What the words around a denial say was tried. */
const writing =
  /\b(creat|writ|mkdir|touch|remove|unlink|rmdir|renam|mov|lock|truncat|chmod|chown|link|symlink|save|append|cannot (?:make|overwrite)|open(?:ing)? .*for writing|copyfile)/i;
const reading =
  /^(cat|ls|head|tail|less|e?grep|rg|find|wc|sort|diff|stat|file|du|tree|cd|source)\b|cannot open directory|\b(scandir|opendir|readdir|listdir)\b/i;
const executing = /fork\/exec|\bexec|\bspawn|cannot run|bad interpreter|failed to run|could not execute/i;
const connecting = /\b(connect|bind|listen|socket|dial)/i;

export type Attempt = "read" | "write" | "execute" | "socket" | undefined;

export interface Finding {
  kind: Denial;
  attempt: Attempt;
  /** As they stand in the output; the likeliest first. */
  paths: string[];
  port?: number;
}

/** What clients of ollie print: the server has refused, and says itself why. */
const serversWords = /^(?:ollie-9p|olliesrv|o): /;

/** Lines of an output that are looked at: the last ones, where programs say why they failed. */
const lineLimit = 200;

export function findDenials(output: string): Finding[] {
  const lines = output.split("\n").slice(-lineLimit);
  return lines.flatMap((line, i) => {
    const kind = serversWords.test(line) ? undefined : kinds.find(([, pattern]) => pattern.test(line))?.[0];
    if (!kind) return [];
    let paths = pathsIn(line);
    // Rust and npm give the path on a line of its own.
    const around = [...lines.slice(Math.max(i - 3, 0), i).reverse(), ...lines.slice(i + 1, i + 4)];
    if (paths.length === 0 && kind !== "missing") paths = around.flatMap(pathsIn);
    const words = paths.length > 0 && pathsIn(line).length === 0 ? [line, ...around].join("\n") : line;
    return [{ kind, attempt: attemptOf(words), paths, port: portIn(line) }];
  });
}

function attemptOf(words: string): Attempt {
  if (connecting.test(words)) return "socket";
  if (writing.test(words)) return "write";
  if (reading.test(words)) return "read";
  return executing.test(words) ? "execute" : undefined;
}

function pathsIn(line: string): string[] {
  const quoted = [...line.matchAll(/'([^']+)'|"([^"]+)"|‘([^’]+)’|`([^`']+)[`']/g)].map((match) =>
    match.slice(1).find((part) => part !== undefined),
  );
  const words = [...line.matchAll(/(?:^|[\s(=:])((?:\/|\.{1,2}\/|~\/)[^\s'"‘’`:(),;]*)/g)].map(
    (match) => match[1],
  );
  // `cat: notes: Permission denied`, `open notes: permission denied`, `config file .git/config: …`
  const before = /([^\s:'"‘’`]+)['"’]?: (?:permission|operation|read-only|device|invalid|no such)/i.exec(
    line,
  )?.[1];
  return [...new Set([before, ...quoted, ...words])].filter(
    (path): path is string => path !== undefined && path.length < 4096 && !path.includes("\0"),
  );
}

/** `1.2.3.4:443`, `[::1]:443`, `localhost port 443` */
function portIn(line: string): number | undefined {
  const found = /(?:(?:\d|\]|localhost|\.[a-z]{2,}):|\bport[ =])(\d{1,5})\b/i.exec(line)?.[1];
  return found !== undefined && Number(found) < 65536 ? Number(found) : undefined;
}
