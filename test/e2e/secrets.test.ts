/** Keys of the server and secrets of a session, looked for wherever somebody could read them. */
import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import { chmodSync, readdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { Home, startServer, succeeded, type TestServer, until } from "./harness.ts";

// The build may be a part of the first one.
setDefaultTimeout(60_000);

/** Handed over in the environment, in the env file, and in the environment of a session. */
const fromEnvironment = "sk-proj-env+Aa0/Bb1=Cc2-0123456789";
const fromFile = "sk-file-9876543210-zyxwvutsrq";
const fromSession = "ghp_session_1234567890abcdef";
const secrets = [fromEnvironment, fromFile, fromSession];

/** What of a text can be read as one of the secrets, also in Base64 and in a URL. */
function found(text: string): string[] {
  const forms = secrets.flatMap((secret) => [
    secret,
    encodeURIComponent(secret),
    Buffer.from(secret).toString("base64").slice(0, -4),
    Buffer.from(secret).toString("base64url").slice(0, -4),
  ]);
  return forms.filter((form) => text.includes(form));
}

/** Prints whatever it can get at, some of it in pieces and in other spellings, and more of it than a result has room for. */
const greedy = `
env | sort
echo "its token is $GH_TOKEN"
for pid in $PPID $(ls /proc | grep -E '^[0-9]+$'); do tr '\\0' '\\n' <"/proc/$pid/environ"; done 2>/dev/null
cat ~/.config/ollie/env
printf %s '${fromEnvironment}' | base64 -w 0; echo
printf %s 'user:${fromEnvironment}' | base64 -w 0; echo
printf '%s' '${fromEnvironment.slice(0, 11)}'; sleep 0.2; echo '${fromEnvironment.slice(11)}'
i=0; while [ $i -lt 2000 ]; do echo "line $i ${fromFile}"; i=$((i + 1)); done
echo '${encodeURIComponent(fromEnvironment)} on stderr' >&2`;

let server: TestServer;
let home: Home;

beforeAll(async () => {
  server = await startServer({
    env: { OLLIE_OPENAI_KEY: fromEnvironment, GITHUB_TOKEN: "gho_of_the_servers_own_shell" },
    config: `OLLIE_OLLAMA_KEY=${fromFile}\n`,
    scenario: {
      rules: [
        { match: { user: "look around" }, do: [{ calls: [{ name: "shell", args: { command: greedy } }] }] },
        {
          match: { tool: "shell" },
          do: [
            { reasoning: `So ${fromFile}.` },
            { text: `I have seen ${fromEnvironment} and ${fromSession}.`, chunk: 3 },
          ],
        },
        {
          match: { user: "fail" },
          do: [{ error: { status: 401, message: `Incorrect key: ${fromEnvironment}` } }],
        },
        { do: [{ text: "ok" }] },
      ],
    },
  });
  home = server.home;
  chmodSync(join(home.config, "env"), 0o600);
  await server.create(`name=s env.GH_TOKEN=${fromSession}`);
  await server.write("s/s/prompt", "look around");
  await server.read("s/s/idlewait");
  await server.write("s/s/prompt", "fail");
  await server.read("s/s/idlewait");
});
afterAll(() => server.stop());

describe("a server's keys", () => {
  test("are gone from its environment, as the kernel shows it, and so are others' secrets", () => {
    const environment = readFileSync(`/proc/${server.pid}/environ`, "latin1");
    expect(environment).toContain("OLLIE_OPENAI_KEY=\0");
    expect(environment).toContain("OLLIE_BACKEND=script\0");
    expect(found(environment)).toEqual([]);
    expect(environment).not.toContain("gho_of_the_servers_own_shell");
  });

  test("are in no process that it has started", () => {
    const children = readdirSync("/proc")
      .filter((name) => /^\d+$/.test(name))
      .filter((pid) => read(`/proc/${pid}/stat`).includes(` ${server.pid} `));
    for (const pid of children) expect(found(read(`/proc/${pid}/environ`))).toEqual([]);
  });

  test("cannot be dumped to a core file", () => {
    expect(readFileSync(`/proc/${server.pid}/limits`, "utf8")).toMatch(/Max core file size +0 /);
  });
});

describe("a tool that prints all it finds", () => {
  test("has printed what it meant to, and names stand in the place of values", async () => {
    const chat = await server.read("s/s/chat");
    expect(chat).toContain("its token is [masked: GH_TOKEN]");
    expect(chat).toContain("line 1 [masked: OLLIE_OLLAMA_KEY]");
    expect(chat).toContain("[masked: OLLIE_OPENAI_KEY] on stderr");
    expect(chat).toContain("I have seen [masked: OLLIE_OPENAI_KEY] and [masked: GH_TOKEN].");
    expect(chat).toContain("Incorrect key: [masked: OLLIE_OPENAI_KEY]");
  });

  test.each(["chat", "reply", "context", "trace", "snapshot", "systemprompt", "prompt.prev", "state"])(
    "leaves no secret in %s",
    async (file) => {
      expect(found(await server.read(`s/s/${file}`))).toEqual([]);
    },
  );

  test("leaves none in the journal, the chat and the log on disk", async () => {
    const agent = join(home.state, "sessions/s/agents/default");
    for (const file of readdirSync(agent)) expect(found(readFileSync(join(agent, file), "utf8"))).toEqual([]);
    expect(server.log).toContain("Incorrect key: [masked: OLLIE_OPENAI_KEY]");
    expect(found(server.log)).toEqual([]);
  });

  test("was given what its session has, under its own name", async () => {
    expect(await server.read("s/s/env")).toContain(`GH_TOKEN=${fromSession}\n`);
  });

  test("leaves none there after a restart either", async () => {
    await server.restart();
    for (const file of ["chat", "context", "reply"])
      expect(found(await server.read(`s/s/${file}`))).toEqual([]);
  });
});

test("a request that is refused is told without the secret in it", async () => {
  const said = await server.p9("write", `s/${fromEnvironment.replaceAll("/", "")}/prompt`);
  expect(said.status).toBe(1);
  const refused = await home.run(["ollie-9p", "write", "session/new"], { stdin: `cwd=/none/${fromFile}\n` });
  expect(refused.status).toBe(1);
  const told = await server.read("lasterr");
  expect(told).toContain("/none/[masked: OLLIE_OLLAMA_KEY]");
  expect(found(told)).toEqual([]);
});

test("a new key is masked from the reload on, and the old one still is", async () => {
  const rotated = "sk-file-rotated-0123456789";
  home.configure(`OLLIE_OLLAMA_KEY=${rotated}\n`);
  succeeded(await home.olliesrv("reload"));
  await until("the server has read it", () => server.log.includes("configuration read again"));
  const refused = await home.run(["ollie-9p", "write", "session/new"], {
    stdin: `cwd=/${rotated}${fromFile}\n`,
  });
  expect(refused.status).toBe(1);
  expect(await server.read("lasterr")).toContain("cwd=/[masked: OLLIE_OLLAMA_KEY][masked: OLLIE_OLLAMA_KEY]");
});

test("a server in the background has the keys of the one who started it, also after a reload", async () => {
  const asked: (string | null)[] = [];
  const provider = Bun.serve({
    port: 0,
    hostname: "127.0.0.1",
    fetch(request) {
      asked.push(request.headers.get("authorization"));
      return Response.json({ data: [{ id: "m" }] });
    },
  });
  const other = new Home({ OLLIE_OPENAI_URL: `${provider.url}v1`, OLLIE_OPENAI_KEY: fromEnvironment });
  try {
    succeeded(await other.olliesrv("start"));
    await until("it asks for models", () => asked.length > 0);
    const { pid } = JSON.parse(succeeded(await other.olliesrv("status", "--json"))) as { pid: number };
    expect(found(read(`/proc/${pid}/environ`) + read(`/proc/${pid}/cmdline`))).toEqual([]);
    const before = asked.length;
    succeeded(await other.olliesrv("reload"));
    await until("it asks again", () => asked.length > before);
    expect(new Set(asked)).toEqual(new Set([`Bearer ${fromEnvironment}`]));
  } finally {
    await other.olliesrv("stop");
    other.remove();
    await provider.stop(true);
  }
});

test("doctor warns where others may read keys, or what agents were told", async () => {
  chmodSync(join(home.config, "env"), 0o644);
  chmodSync(home.state, 0o755);
  const { stdout } = await home.olliesrv("doctor");
  expect(stdout).toContain("~/.config/ollie/env holds keys, and others may read or write it (mode 0644)\n");
  expect(stdout).toContain("→ chmod 600 ~/.config/ollie/env\n");
  expect(stdout).toContain("→ chmod 700 ~/.local/state/ollie\n");
  chmodSync(join(home.config, "env"), 0o600);
  chmodSync(home.state, 0o700);
  expect((await home.olliesrv("doctor")).stdout).not.toContain("chmod");
  writeFileSync(join(home.config, "env"), "OLLIE_LOG=info\n");
  chmodSync(join(home.config, "env"), 0o644);
  expect(statSync(join(home.config, "env")).mode & 0o777).toBe(0o644);
  expect((await home.olliesrv("doctor")).stdout).not.toContain("chmod");
});

/** What can be read of a file of a process, which may have ended. */
function read(path: string): string {
  try {
    return readFileSync(path, "latin1");
  } catch {
    return "";
  }
}
