/** web_fetch against servers on the loopback interface. */
import { afterAll, describe, expect, test } from "bun:test";
import { existsSync, readFileSync } from "node:fs";
import { createServer, type Socket } from "node:net";
import { join } from "node:path";
import { placeOfName } from "../../data/tools/lib/web/addresses.ts";
import { load } from "../../data/tools/lib/web/load.ts";
import { takeProxies } from "../../data/tools/lib/web/proxy.ts";
import { ask, parseUrl } from "../../data/tools/lib/web/request.ts";
import { lacksPrograms } from "../needs.ts";
import { Workshop } from "./helper.ts";

const article = `<!doctype html><title>Bolts &amp; nuts</title><body><nav><a href="/">Home</a></nav>
<main><h1>Bolts</h1><p>See <a href="/nuts">the nuts</a>.</p><p>${"Bolts hold things together. ".repeat(20)}</p></main></body>`;
const lines = Array.from({ length: 3000 }, (_, i) => `line ${i + 1} of the log`);

const pages: Record<string, (request: Request) => Response | Promise<Response>> = {
  "/article": () => html(article),
  "/host": (request) => new Response(request.headers.get("host")),
  "/agent": (request) => new Response(request.headers.get("user-agent")),
  "/json": () => Response.json({ a: [1, "<b>"] }),
  "/log": () => new Response(lines.join("\n"), { headers: { "content-type": "text/plain" } }),
  "/gzip": () =>
    new Response(Bun.gzipSync(Buffer.from("squeezed")), {
      headers: { "content-type": "text/plain", "content-encoding": "gzip" },
    }),
  "/bad-gzip": () =>
    new Response("this is no gzip", {
      headers: { "content-type": "text/plain", "content-encoding": "gzip" },
    }),
  "/bomb": () =>
    new Response(bomb, { headers: { "content-type": "text/plain", "content-encoding": "gzip" } }),
  "/endless": () =>
    new Response(new ReadableStream({ pull: (to) => to.enqueue(Buffer.alloc(65536, "endless ")) }), {
      headers: { "content-type": "text/plain" },
    }),
  "/picture.png": () => new Response(png, { headers: { "content-type": "image/png" } }),
  "/liar": () => new Response(png, { headers: { "content-type": "text/plain" } }),
  "/source": () => new Response("int main;\n", { headers: { "content-type": "application/octet-stream" } }),
  "/empty": () => new Response("", { headers: { "content-type": "text/html" } }),
  "/latin1": () =>
    new Response(Buffer.from("<p>caf\xe9", "latin1"), {
      headers: { "content-type": "text/html; charset=latin1" },
    }),
  "/sjis": () =>
    new Response(Buffer.from('<meta charset="shift_jis"><p>\x93\xfa\x96{', "latin1"), {
      headers: { "content-type": "text/html" },
    }),
  "/odd-charset": () => new Response("text", { headers: { "content-type": "text/plain; charset=klingon" } }),
  "/missing": () =>
    new Response("<h1>Not here</h1><p>Try the index.", {
      status: 404,
      headers: { "content-type": "text/html" },
    }),
  "/broken": () => new Response(null, { status: 503 }),
  "/one": () => Response.redirect("/two", 301),
  "/two": () => Response.redirect("/article#part", 307),
  "/circle": () => Response.redirect("/circle", 302),
  "/to-file": () => new Response(null, { status: 302, headers: { location: "file:///etc/passwd" } }),
  "/to-metadata": () =>
    new Response(null, { status: 302, headers: { location: "http://169.254.169.254/latest" } }),
};
const html = (text: string) =>
  new Response(text, { headers: { "content-type": "text/html; charset=utf-8" } });
const png = Buffer.concat([Buffer.from("\x89PNG\r\n\x1a\n\0\0\0\rIHDR", "latin1"), Buffer.alloc(500)]);
const bomb = Bun.gzipSync(Buffer.alloc(300_000_000, "a"), { level: 9 });

const server = Bun.serve({
  hostname: "127.0.0.1",
  port: 0,
  fetch: (request) => pages[new URL(request.url).pathname]?.(request) ?? new Response("?", { status: 404 }),
});
const base = `http://127.0.0.1:${server.port}`;
afterAll(() => server.stop(true));

const shop = new Workshop();
const fetched = (path: string, more: Record<string, unknown> = {}) =>
  shop.ok("web_fetch", { url: `${base}${path}`, ...more });
const refused = (url: string) => shop.no("web_fetch", { url });

/** A server of one answer, byte by byte. */
async function raw(answer: string, then: (socket: Socket) => void): Promise<string> {
  const tcp = createServer((socket) => {
    socket.on("error", () => undefined);
    socket.once("data", () => socket.write(answer, "latin1", () => then(socket)));
  });
  await new Promise<void>((done) => tcp.listen(0, "127.0.0.1", done));
  tcp.unref();
  return `http://127.0.0.1:${(tcp.address() as { port: number }).port}/`;
}

describe("what web_fetch shows", () => {
  test("a page: its address, type and title, and its main part with whole links", async () => {
    const text = await fetched("/article");
    expect(text).toStartWith(
      `${base}/article (text/html, ${article.length} bytes)\n\n# Bolts & nuts\n\n# Bolts\n\nSee [the nuts](${base}/nuts).\n`,
    );
    expect(text).not.toContain("Home");
    expect(await fetched("/article", { raw: true })).toContain('<nav><a href="/">Home</a></nav>');
  });

  test("texts and JSON as they are, also where the server does not know that it is one", async () => {
    expect(await fetched("/json")).toEndWith(' bytes)\n\n{"a":[1,"<b>"]}');
    expect(await fetched("/source")).toEndWith("\n\nint main;");
    expect(await fetched("/empty")).toEndWith("(text/html, 0 bytes)\n\n(there is no text in it)");
  });

  test("what was compressed", async () => {
    expect(await fetched("/gzip")).toEndWith("\n\nsqueezed");
  });

  test("a page of a long text at a time, and keeps the whole", async () => {
    const seen: string[] = [];
    for (let offset = 1; offset <= lines.length; ) {
      const page = await fetched("/log", { offset });
      expect(page).not.toContain("left out");
      seen.push(...page.split("\n").filter((line) => /^line \d+ of the log$/.test(line)));
      if (offset === 1) {
        const copy = /the whole text is in (\S+), for/.exec(page)![1]!;
        expect(copy).toStartWith(`${shop.ctx.tmp}/`);
        expect(readFileSync(copy, "utf8")).toBe(lines.join("\n"));
      }
      offset = Number(/offset=(\d+) goes on/.exec(page)?.[1] ?? Number.POSITIVE_INFINITY);
    }
    expect(seen).toEqual(lines);
    expect(await shop.no("web_fetch", { url: `${base}/log`, offset: 9999 })).toContain("only 3000 lines");
  });

  test("the character set that header or page name", async () => {
    expect(await fetched("/latin1")).toEndWith("\n\ncafé");
    expect(await fetched("/sjis")).toEndWith("\n\n日本");
    expect(await fetched("/odd-charset")).toEndWith('\n\ntext\n[the character set "klingon" is not known]');
  });

  test("where redirects led", async () => {
    const text = await fetched("/one");
    expect(text).toStartWith(`${base}/article (`);
    expect(text).toContain(`\nredirected from ${base}/one, ${base}/two\n`);
  });

  test("says who asks", async () => {
    expect(await fetched("/agent")).toContain("ollie");
  });
});

describe("what web_fetch saves", () => {
  test("anything that is no text, in the session's own folder", async () => {
    for (const path of ["/picture.png", "/liar"]) {
      const file = /No text\. Saved as (\S+)/.exec(await fetched(path))![1]!;
      expect(file).toStartWith(`${shop.ctx.tmp}/`);
      expect(readFileSync(file)).toEqual(png);
    }
  });
});

describe("what web_fetch stops", () => {
  test("a text without end, and one that unpacks to many times its size", async () => {
    for (const path of ["/endless", "/bomb"]) {
      const text = await fetched(path);
      expect(text).toContain("(text/plain, more than 5,242,880 bytes)");
      expect(text).toEndWith("[only the first 5,242,880 bytes were looked at]");
    }
  });

  test("redirects that go in a circle, to files, or to where clouds hand out credentials", async () => {
    expect(await refused(`${base}/circle`)).toContain("more than 10 redirects");
    expect(await refused(`${base}/to-file`)).toContain("file: cannot be fetched: only http: and https:");
    expect(await refused(`${base}/to-metadata`)).toContain("169.254.169.254 is not fetched");
  });

  test("what is no address of the web", async () => {
    for (const url of ["file:///etc/passwd", "data:text/plain,x", "ftp://127.0.0.1/x", "chrome://x"])
      expect(await refused(url)).toContain("cannot be fetched: only http: and https:");
    expect(await refused("http://")).toContain("is no URL");
    expect(await refused("http://user:secret@127.0.0.1/")).toContain("user or password");
    expect(await refused("http://[::ffff:169.254.169.254]/")).toContain("credentials");
  });
});

describe("errors of web_fetch", () => {
  test("an answer such as 404 fails with its words", async () => {
    expect(await refused(`${base}/missing`)).toContain(
      `${base}/missing answers 404 Not Found:\n# Not here\n\nTry the index.\n[exit 1`,
    );
    expect(await refused(`${base}/broken`)).toContain("/broken answers 503 Service Unavailable\n[exit 1");
  });

  test("no host, no server, no certificate that counts", async () => {
    expect(await refused("http://nowhere.invalid/")).toMatch(
      /there is no host nowhere\.invalid|could not be resolved/,
    );
    const closed = createServer();
    await new Promise<void>((done) => closed.listen(0, "127.0.0.1", done));
    const { port } = closed.address() as { port: number };
    await new Promise((done) => closed.close(done));
    expect(await refused(`http://127.0.0.1:${port}/`)).toContain("refuses the connection");
    expect(await refused(`https://127.0.0.1:${server.port}/`)).toMatch(
      /no TLS connection|closed the connection/,
    );
  });

  test("an answer that ends too early, is damaged, or is none", async () => {
    const short = await raw(
      "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 100\r\n\r\nonly this",
      (to) => to.destroy(),
    );
    expect(await refused(short)).toContain("closed the connection before its answer was complete");
    expect(await refused(await raw("nonsense\r\n\r\n", (to) => to.end()))).toContain("exit 1");
    expect(await refused(`${base}/bad-gzip`)).toContain(`${base}/bad-gzip could not be fetched`);
  });
});

test("a proxy is asked where the environment names one, and not where it makes an exception", async () => {
  const proxy = Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    fetch: ({ url }) => new Response(`proxy: ${url}`),
  });
  const behind = new Workshop(undefined, {
    env: { http_proxy: `http://127.0.0.1:${proxy.port}`, no_proxy: "127.0.0.1" },
  });
  expect(await behind.ok("web_fetch", { url: "http://nowhere.invalid/x" })).toEndWith(
    "\n\nproxy: http://nowhere.invalid/x",
  );
  expect(await behind.ok("web_fetch", { url: `${base}/json` })).toContain('{"a"');
  expect(await behind.no("web_fetch", { url: "http://metadata.google.internal/" })).toContain("credentials");
  await proxy.stop(true);
});

test("an answer from outside does not lead into the user's network", async () => {
  // Behind a proxy every name counts as outside.
  const proxy = Bun.serve({ hostname: "127.0.0.1", port: 0, fetch: () => Response.redirect(`${base}/json`) });
  const behind = new Workshop(undefined, {
    env: { http_proxy: `http://127.0.0.1:${proxy.port}`, no_proxy: "127.0.0.1" },
  });
  expect(await behind.no("web_fetch", { url: "http://nowhere.invalid/" })).toContain(
    `http://nowhere.invalid/ redirects to ${base}/json, which is inside of the user's network: not followed`,
  );
  await proxy.stop(true);
});

describe("requests", () => {
  const direct = { proxyFor: () => undefined, patience: 60_000 };

  test("go to an address that was checked, whatever the name means later", async () => {
    const asked: string[] = [];
    const resolve = async (name: string) => {
      asked.push(name);
      return asked.length === 1 ? ["127.0.0.1"] : ["169.254.169.254"];
    };
    const url = new URL(`http://changing.test:${server.port}/host`);
    const { response } = await ask(url, { ...direct, resolve });
    expect(await response.text()).toBe(`changing.test:${server.port}`);
    await expect(ask(url, { ...direct, resolve })).rejects.toThrow("changing.test:");
    expect(asked).toEqual(["changing.test", "changing.test"]);
  });

  test("try all addresses of a name", async () => {
    const url = new URL(`http://two.test:${server.port}/host`);
    const { response } = await ask(url, { ...direct, resolve: async () => ["127.0.0.2", "127.0.0.1"] });
    expect(await response.text()).toContain("two.test");
  });

  test("end in time, before the answer and within it", async () => {
    const silent = new URL(await raw("", () => undefined));
    await expect(ask(silent, { ...direct, patience: 300 })).rejects.toThrow(
      "no complete answer within 0.3 s",
    );
    const halting = new URL(await raw("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf", () => undefined));
    const answer = await ask(halting, { ...direct, patience: 300 });
    const limits = { text: 100, file: 100 };
    await expect(load(answer, limits, false, String)).rejects.toThrow("within 0.3 s (4 bytes had come)");
  });

  test("a file that is too long is not kept in part", async () => {
    const place = join(shop.dir, "part.png");
    const answer = await ask(new URL(`${base}/picture.png`), direct);
    const content = await load(answer, { text: 100, file: 100 }, false, () => place);
    expect(content).toMatchObject({ kind: "file", whole: false });
    expect(existsSync(place)).toBe(false);
  });
});

describe("addresses", () => {
  test("are the user's own, outside, or never asked, however they are written", () => {
    const places = (hosts: string) =>
      new Set(hosts.split(" ").map((host) => placeOfName(new URL(`http://${host}/`).hostname)));
    expect(
      places(
        "169.254.169.254 2852039166 0xA9FEA9FE [::ffff:a9fe:a9fe] [64:ff9b::a9fe:a9fe] [fe80::1] [fd00:ec2::254]",
      ),
    ).toEqual(new Set(["forbidden"]));
    expect(places("100.100.100.200 metadata.google.internal 224.0.0.1")).toEqual(new Set(["forbidden"]));
    expect(
      places("localhost a.localhost 127.1 [::1] [::ffff:10.0.0.1] 192.168.1.1 172.31.0.1 0.0.0.0 [fd12::1]"),
    ).toEqual(new Set(["private"]));
    expect(places("example.org 8.8.8.8 172.32.0.1 [2001:db8::1]")).toEqual(new Set(["public"]));
  });

  test("may lack their scheme", () => {
    expect(parseUrl("example.org/x#part").href).toBe("https://example.org/x");
    expect(parseUrl(" localhost:3000/x ").href).toBe("http://localhost:3000/x");
    expect(parseUrl("example.org:8080").href).toBe("https://example.org:8080/");
  });
});

test("proxies are read as curl reads them, and leave the environment", () => {
  const environment: Record<string, string | undefined> = {
    HTTPS_PROXY: "proxy:3128",
    all_proxy: "http://rest:1",
    no_proxy: "localhost, .inside.test,*.x.test ,10.0.0.1:81,[::1]",
    OTHER: "1",
  };
  const proxyFor = takeProxies(environment);
  const proxy = (url: string) => proxyFor(new URL(url));
  expect(environment).toEqual({ OTHER: "1" });
  expect(proxy("https://example.org/")).toBe("http://proxy:3128");
  expect(proxy("http://example.org/")).toBe("http://rest:1");
  for (const url of [
    "http://localhost/",
    "http://a.inside.test/",
    "https://inside.test/",
    "http://y.x.test/",
    "http://10.0.0.1:81/",
    "http://[::1]/",
  ])
    expect(proxy(url)).toBeUndefined();
  for (const url of ["http://10.0.0.1/", "http://notinside.test/"]) expect(proxy(url)).toBe("http://rest:1");
  expect(() => takeProxies({ http_proxy: "socks5://u:p@h:1" })(new URL("http://x/"))).toThrow(
    "the proxy socks5://h:1 is no http proxy",
  );
});

test.skipIf(lacksPrograms("openssl"))(
  "TLS: a certificate has to be one that counts, and for the name that was asked for",
  async () => {
    const [key, cert] = [join(shop.dir, "key.pem"), join(shop.dir, "cert.pem")];
    Bun.spawnSync([
      ...[
        "openssl",
        "req",
        "-x509",
        "-newkey",
        "rsa:2048",
        "-nodes",
        "-keyout",
        key,
        "-out",
        cert,
        "-days",
        "2",
      ],
      ...["-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost"],
    ]);
    const tls = Bun.serve({
      hostname: "127.0.0.1",
      port: 0,
      tls: { key: Bun.file(key), cert: Bun.file(cert) },
      fetch: () => new Response("over TLS"),
    });
    expect(await refused(`https://localhost:${tls.port}/`)).toContain(
      "cannot be verified (DEPTH_ZERO_SELF_SIGNED_CERT)",
    );
    const trusting = new Workshop(undefined, { env: { NODE_EXTRA_CA_CERTS: cert } });
    expect(await trusting.ok("web_fetch", { url: `https://localhost:${tls.port}/` })).toEndWith(
      "\n\nover TLS",
    );
    expect(await trusting.no("web_fetch", { url: `https://127.0.0.1:${tls.port}/` })).toContain(
      "is for another name",
    );
    await tls.stop(true);
  },
);
