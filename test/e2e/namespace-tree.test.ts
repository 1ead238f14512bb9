/** Which files there are, with which modes, and that doc/NAMESPACE.md says so. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { DMDIR, OEXEC, ORDWR, OREAD, OTRUNC, OWRITE } from "../../src/ninep/file.ts";
import { run, startServer } from "./harness.ts";
import { refusal, type Session, World } from "./namespace-world.ts";

const doc = readFileSync(join(import.meta.dir, "../../doc/NAMESPACE.md"), "utf8");

let world: World;
let session: Session;
beforeAll(async () => {
  world = await World.start();
  session = await world.session();
  await world.write(`${session.agent}/prompt`, "detach true");
  await world.idle(session.agent);
});
afterAll(() => world.stop());

/** `path mode` of all that the document draws; folders end in a slash. */
function documented(): string[] {
  const [, block] = /^```tree\n(.*?)^```$/ms.exec(doc)!;
  const above: string[] = [];
  return block!
    .trimEnd()
    .split("\n")
    .map((line) => {
      const [, indent, name, mode] = /^( *)(\S+) +(0[0-7]{3})(?: |$)/.exec(line)!;
      const depth = indent!.length / 2;
      above.length = depth;
      above.push(name!);
      return `${above.join("").replace(/^\//, "") || "/"} ${mode}`;
    });
}

/** The same of what is there. Below `s/` a session's files are those of `session/`; see namespace-short.test.ts. */
async function present(path: string, shown: string): Promise<string[]> {
  const found: string[] = [];
  for (const { name, mode } of await world.client.readDir(path)) {
    const below = path === "" ? name : `${path}/${name}`;
    const folder = (mode & DMDIR) !== 0;
    const placeholder = { [session.name]: "{session}", default: "{agent}", 1: "{id}" }[name] ?? name;
    const line = `${shown}${placeholder}${folder ? "/" : ""}`;
    found.push(`${line} 0${(mode & 0o777).toString(8).padStart(3, "0")}`);
    if (folder && path !== "s") found.push(...(await present(below, line)));
  }
  return found;
}

/** Every file, once each. */
async function files(): Promise<{ path: string; mode: number }[]> {
  const all: { path: string; mode: number }[] = [];
  for (const folder of ["", "session", session.path, `${session.path}/agent`, session.agent])
    for (const { name, mode } of await world.client.readDir(folder))
      if (!(mode & DMDIR)) all.push({ path: folder === "" ? name : `${folder}/${name}`, mode });
  return all;
}

const folders = () => [
  "",
  "session",
  "s",
  session.path,
  `${session.path}/agent`,
  session.agent,
  `s/${session.name}`,
];

describe("doc/NAMESPACE.md", () => {
  test("draws the tree as it is, every name and mode", async () => {
    const root = await world.client.stat("");
    const tree = [`/ 0${(root.mode & 0o777).toString(8)}`, ...(await present("", ""))];
    expect(documented().sort()).toEqual(tree.sort());
  });

  test("lists the verbs as they are", async () => {
    const listed = (heading: string) => {
      const [, table] = new RegExp(`^\\| ${heading} \\| does \\|\\n\\|---\\|---\\|\\n(.*?)^$`, "ms").exec(
        doc,
      )!;
      return table!
        .split("\n")
        .flatMap((row) => row.split(" | ")[0]!.match(/`[^`]+`/g) ?? [])
        .map((code) => code.slice(1, -1));
    };
    await world.write(`${session.agent}/prompt`, "/help\n");
    const help = await world.read(`${session.agent}/chat`);
    const shown = [...help.matchAll(/^\/(.*?) {2,}/gm)].map((match) => match[1]!);
    expect(
      listed("verb of an agent")
        .filter((form) => form !== "rn")
        .sort(),
    ).toEqual(shown.sort());
    const words = await refusal(world.write(`${session.path}/ctl`, "nonsense\n"));
    expect(/there are (.*)$/.exec(words)![1]!.split(" ").sort()).toEqual(
      listed("verb of a session")
        .map((form) => form.split(" ")[0]!)
        .filter((verb) => verb !== "rn")
        .sort(),
    );
  });

  test("lists the keys of cfg as they are", async () => {
    for (const [heading, path] of [
      ["key of a session", `${session.path}/cfg`],
      ["key of an agent", `${session.agent}/cfg`],
    ]) {
      const [, table] = new RegExp(`^\\| ${heading} \\| is \\|\\n\\|---\\|---\\|\\n(.*?)^$`, "ms").exec(doc)!;
      const listed = table!.split("\n").flatMap((row) => row.split(" | ")[0]!.match(/(?<=`)\w+(?=`)/g) ?? []);
      const keys = (await world.read(path!))
        .trimEnd()
        .split("\n")
        .map((line) => line.split("=")[0]!);
      expect(listed.sort()).toEqual(keys.sort());
    }
  });
});

describe("modes", () => {
  test("are enforced when a file is opened", async () => {
    for (const { path, mode } of await files())
      for (const [access, needs] of [
        [OREAD, 0o400],
        [OWRITE, 0o200],
        [ORDWR, 0o600],
        [OEXEC, 0o100],
        [OREAD | OTRUNC, 0o600],
        [OWRITE | OTRUNC, 0o200],
      ] as const) {
        const opened = world.client.openFile(path, access);
        if ((mode & needs) === needs) await (await opened).clunk();
        else
          expect([path, access, await refusal(opened)]).toEqual([
            path,
            access,
            expect.stringMatching(/^permission denied: /),
          ]);
      }
  });

  test("let folders be read only", async () => {
    for (const folder of folders()) {
      for (const access of [OWRITE, ORDWR, OREAD | OTRUNC])
        expect(await refusal(world.client.openFile(folder, access))).toStartWith("Is a directory: ");
      await (await world.client.openFile(folder, OREAD)).clunk();
    }
  });

  test("let nothing be created, under any name", async () => {
    for (const folder of folders())
      for (const name of ["x", "sedAbCdEf", "plan.new", "new2", ".hidden"]) {
        expect(await refusal(world.client.create(`${folder}/${name}`, 0o644, OWRITE))).toStartWith(
          "permission denied: ",
        );
        expect(await refusal(world.client.mkdir(`${folder}/${name}`))).toStartWith("permission denied: ");
      }
    const { status, stderr } = await world.p9(["create", `${session.path}/x`]);
    expect([status, stderr.trim().split("\n").length]).toEqual([1, 1]);
  });
});

describe("names that are not there", () => {
  for (const [path, words] of [
    ["nonsense", "the root has no nonsense; help says what there is"],
    ["session/nobody/plan", "no session nobody; session/idx lists them all"],
    ["s/nobody/state", "no session nobody; session/idx lists them all"],
    ["session/SESSION/chat", "a session has no file chat"],
    ["session/SESSION/agent/nobody/chat", "session SESSION has no agent nobody"],
    ["session/SESSION/agent/default/plan", "an agent has no file plan"],
    ["s/SESSION/nonsense", "neither the session nor its first agent has a file nonsense"],
  ] as const)
    test(`are told: ${path}`, async () => {
      const named = (text: string) => text.replace("SESSION", session.name);
      expect(await refusal(world.read(named(path)))).toBe(`file does not exist: ${named(words)}`);
      const { status, stdout, stderr } = await world.p9(["read", named(path)]);
      expect([status, stdout]).toEqual([1, ""]);
      expect(stderr).toContain(named(words));
    });

  test("are no folders where they are files", async () => {
    expect(await refusal(world.read("help/x"))).toStartWith("not a directory: ");
    expect(await refusal(world.read(`${session.agent}/chat/x`))).toStartWith("not a directory: ");
  });
});

describe("the owner of the files", () => {
  const uid = String(process.getuid!());
  const name =
    readFileSync("/etc/passwd", "utf8")
      .split("\n")
      .map((line) => line.split(":"))
      .find((fields) => fields[2] === uid)?.[0] ?? uid;

  test("is the user of the server, whatever the environment says", async () => {
    for (const user of ["", "somebody-else"]) {
      const server = await startServer({ env: { USER: user, LOGNAME: user } });
      try {
        const { stdout } = await server.p9("ls", "-l", "version");
        expect(stdout).toContain(` ${name} `);
      } finally {
        await server.stop();
      }
    }
  });

  test("alone can enter the folder of the socket", async () => {
    const { stdout } = await run(
      ["stat", "-c", "%a %F", join(world.home.folder, "run/ollie"), join(world.home.folder, "run/ollie/9p")],
      world.home.env,
    );
    expect(stdout).toBe("700 directory\n600 socket\n");
  });
});

describe("addresses", () => {
  test("are also those of Plan 9's programs where NAMESPACE is set", async () => {
    const server = await startServer({ env: { NAMESPACE: join(world.home.folder, "ns") } });
    try {
      const { stdout } = await server.p9("-a", `unix!${world.home.folder}/ns/ollie`, "read", "version");
      expect(stdout).toBe(await server.read("version"));
    } finally {
      await server.stop();
    }
  });

  test("that are not built in are refused", async () => {
    const home = world.home;
    for (const address of ["tcp!127.0.0.1!5640", "tls!127.0.0.1!5640"]) {
      const { status, stderr } = await home.olliesrv(
        "fgstart",
        "--state",
        join(home.folder, "other"),
        "--listen",
        address,
      );
      expect([address, status]).toEqual([address, 1]);
      expect(stderr).toContain(address);
    }
  });
});
