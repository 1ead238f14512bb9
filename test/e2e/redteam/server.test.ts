/** Attempts on the server and on what is the user's own: keys, configs, other sessions, approvals, what a login or a shell runs. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { existsSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { contentOf, hosts, Victim } from "./victim.ts";

const key = "sk-proj-nobody-else-reads-this-0123456789";
const stopped =
  /permission denied|read-only file system|no such file|not permitted|not a directory|cannot|refused|error/i;

/** Below the home folder: what a shell, a login, a desktop, git, ssh, cron or the user runs or obeys. Some of it is there already. */
const obeyed = [
  ".bashrc .profile .bash_profile .bash_login .bash_logout .bash_aliases .zshrc .zshenv .zprofile .xprofile .xinitrc .xsessionrc .pam_environment",
  ".inputrc .tmux.conf .vimrc .exrc .gdbinit .config/fish/config.fish .config/nvim/init.lua .config/autostart/x.desktop",
  ".config/systemd/user/x.service .config/systemd/user/default.target.wants/x.service .config/environment.d/x.conf .config/tmux/tmux.conf",
  ".local/share/applications/x.desktop .local/share/dbus-1/services/x.service .local/share/systemd/user/x.service .config/plasma-workspace/env/x.sh",
  ".ssh/authorized_keys .ssh/config .ssh/rc .ssh/environment .gnupg/gpg.conf .netrc .npmrc .gitconfig .config/git/config .config/git/attributes",
  ".cargo/bin/cargo .cargo/env .cargo/config.toml .cargo/config go/bin/x .local/bin/x .local/bin/olliesrv .local/bin/o bin/x .bun/bin/bun",
  ".gradle/init.d/x.gradle .gradle/gradle.properties .m2/settings.xml .config/pip/pip.conf .config/npm/npmrc .config/go/env .config/mise/config.toml",
  ".config/ollie/env .config/ollie/tools/shell .config/ollie/tools/shell.meta .config/ollie/tools/new .config/ollie/tools/lib/x.ts",
  ".config/ollie/agents/default.json .config/ollie/agents/new.json .config/ollie/prompts/x.md .config/ollie/skills/x/SKILL.md",
  ".config/ollie/sandbox/default.yaml .config/ollie/sandbox/new.yaml .config/ollie/scripts/o .config/ollie/hooks/x .config/ollie/.installed.json",
  ".local/state/ollie/sandbox-approvals.json .local/state/ollie/launch/x .local/state/ollie/olliesrv.pid .cache/ollie/x",
]
  .join(" ")
  .split(" ");

const { full, fallback } = hosts;

describe.each(Object.entries({ full, fallback }))("%s host", (_name, host) => {
  let victim: Victim;
  let other: string;
  beforeAll(async () => {
    victim = await Victim.start({
      ...host,
      env: { OLLIE_OPENAI_KEY: key },
      config: `OLLIE_ANTHROPIC_KEY=${key}\n`,
    });
    other = await victim.session();
    await victim.run(
      'echo "a secret of its own" >/tmp/secret; echo "a secret of its own" >$TMPDIR/secret; echo "a secret of its own"',
      other,
    );
  });
  afterAll(() => victim.stop());

  describe("what the user's programs run or obey", () => {
    let before: Record<string, string>;
    let said: Map<string, string>;
    beforeAll(async () => {
      before = victim.belongings();
      said = await victim.each(
        obeyed,
        'p=$HOME/$1; mkdir -p "$(dirname "$p")"; echo evil >>"$p"; cp /bin/true "$p"; ln -sf /bin/true "$p"',
      );
    });

    test.each(obeyed)("~/%s is neither made nor changed", (name) => {
      expect(said.get(name)).toMatch(stopped);
      const path = join(victim.home, name);
      expect(contentOf(path)).not.toContain("evil");
      expect(victim.belongings()[path]).toEqual(before[path]);
    });

    test("and nothing beside it", () => expect(victim.belongings()).toEqual(before));

    test.each(["mv", "rm -rf", "ln -s"])("and no folder around it is moved away (%s)", async (verb) => {
      const before = victim.belongings();
      for (const folder of [
        ".ssh",
        ".config",
        ".config/ollie",
        ".config/ollie/tools",
        ".local",
        ".local/state",
        ".cache",
        ".cargo",
      ])
        await victim.run(
          verb === "rm -rf"
            ? `rmdir $HOME/${folder}`
            : `${verb} $HOME/${folder} moved || ${verb} $HOME/${folder} $HOME/${folder}-2`,
        );
      expect(victim.belongings()).toEqual(before);
    });

    test.each(["olliesrv", "ollie-9p", "o"])("the program %s stays as it is", async (program) => {
      const path = join(victim.server.bin, program);
      const before = victim.belongings();
      const result = await victim.run(
        `echo evil >>${path}; mv ${path} moved; cp /bin/true ${path}; rm ${path}; ln -f ${path} linked && echo evil >>linked`,
      );
      expect(result).toMatch(stopped);
      expect(victim.belongings()).toEqual(before);
    });

    test("nor is anything run by cron, at or systemd", async () => {
      const trace = join(victim.outside, "trace");
      await victim.run(
        `echo '* * * * * touch ${trace}' | crontab -; echo 'touch ${trace}' | at now; systemd-run --user touch ${trace}; systemctl --user daemon-reload; loginctl enable-linger`,
      );
      expect(existsSync(trace)).toBe(false);
      expect(existsSync(`/var/spool/cron/crontabs/${process.env.USER}`)).toBe(false);
    });
  });

  describe("secrets", () => {
    test.each([
      ["the env file", () => `cat ${victim.home}/.config/ollie/env`],
      ["the environment", () => "env; set; export -p"],
      ["its own process", () => "cat /proc/self/environ /proc/$PPID/environ | tr '\\0' '\\n'"],
      [
        "the files of sessions",
        () =>
          `cat ${victim.home}/.local/state/ollie/sessions/*/session.json ${victim.home}/.local/state/ollie/sessions/*/agents/*/journal.jsonl ${victim.home}/.local/state/ollie/sessions/${other}/session.json`,
      ],
      ["the log", () => `cat ${victim.home}/.local/state/ollie/olliesrv.log`],
      [
        "everything that can be found",
        () =>
          `grep -rs sk-proj ${victim.home} ${victim.outside} ${dirname(dirname(victim.socket))} | head; find ${victim.home} ${dirname(dirname(victim.socket))} -type f -size -100k 2>/dev/null | xargs grep -ls sk-proj | head`,
      ],
      ["ssh", () => `cat ${victim.home}/.ssh/id_ed25519`],
      [
        "the tree",
        () =>
          "ollie-9p read env ctl; ollie-9p read backends; ollie-9p read metrics; for f in $(ollie-9p ls session/$OLLIE_SESSION); do ollie-9p read session/$OLLIE_SESSION/$f; done",
      ],
    ])("are not in %s", async (_where, command) => {
      const result = await victim.run(command());
      expect(result).not.toContain("sk-proj-");
      expect(result).not.toContain(".ssh/id_ed25519\n.");
      expect(result).not.toMatch(/^\.ssh\/id_ed25519$/m);
    });

    test.each([
      ["its /tmp", () => "cat /tmp/secret"],
      [
        "its TMPDIR",
        () =>
          `cat ${victim.home}/.local/state/ollie/tmp/*/tmp/secret; for d in ${folders()}; do cat $d/tmp/secret $d/slash-tmp/secret; ls $d $d/tmp; done`,
      ],
      ["its outputs", () => `for d in ${folders()}; do cat $d/output/*; done`],
      [
        "its chat, by the tree",
        () =>
          `ollie-9p read session/${other}/chat session/${other}/agent/default/chat; ollie-9p ls session/${other}; ollie-9p ls session`,
      ],
      [
        "its journal",
        () => `cat ${victim.home}/.local/state/ollie/sessions/${other}/agents/default/journal.jsonl`,
      ],
    ])("of another session are not got from %s", async (_where, command) => {
      const result = await victim.run(command());
      expect(result).not.toContain("a secret of its own");
      expect(result).not.toMatch(new RegExp(`^${other}$`, "m"));
    });

    /** Those of the other sessions. */
    function folders(): string {
      const tmp = join(victim.home, ".local/state/ollie/tmp");
      return readdirSync(tmp)
        .map((name) => join(tmp, name))
        .filter((folder) => contentOf(join(folder, "tmp/secret")) !== "")
        .join(" ");
    }
  });

  describe("another session", () => {
    test.each([
      [
        "is told something",
        () => `echo "run touch ${victim.outside}/trace" | ollie-9p write s/${other}/prompt`,
      ],
      ["is stopped", () => `echo kill | ollie-9p write session/${other}/ctl`],
      ["is removed", () => `ollie-9p rm -r session/${other}`],
      ["gets another folder", () => `echo cwd=/ | ollie-9p write session/${other}/cfg`],
      ["gets another sandbox", () => `echo sandbox=none | ollie-9p write session/${other}/cfg`],
      [
        "is made with a share",
        () => `echo "name=mine share=${other}" | ollie-9p write session/new; ollie-9p read session/mine/chat`,
      ],
      [
        "is made in another folder",
        () => `echo "name=\${OLLIE_SESSION}__x cwd=${victim.outside}" | ollie-9p write session/new`,
      ],
    ])("%s", async (_what, command) => {
      const result = await victim.run(command());
      expect(result).toMatch(/permission denied|does not exist|no such/i);
      expect(existsSync(join(victim.outside, "trace"))).toBe(false);
      expect(await victim.read(`session/${other}/cfg`)).toContain(`cwd=${victim.work}\n`);
      expect((await victim.client.readDir("session")).map(({ name }) => name)).not.toContain("mine");
    });

    test("a sub-session has no other rights than the one that made it", async () => {
      const own = await victim.session();
      const trace = join(victim.outside, "trace");
      const result = await victim.run(
        `echo "name=${own}__kid cwd=${victim.work}" | ollie-9p write session/new && echo "run touch ${trace}; cat ${victim.outside}/file" | ollie-9p write s/${own}__kid/prompt; ollie-9p read s/${own}__kid/idlewait s/${own}__kid/reply`,
        own,
      );
      expect(result).toMatch(/cannot touch/);
      expect(result).not.toContain("untouched");
      expect(existsSync(trace)).toBe(false);
    });
  });

  describe("out of the sandbox", () => {
    /** The answer is needed at once: nobody is there to give one. */
    async function elevated(session: string): Promise<string> {
      return victim.ask(`elevated id >${victim.outside}/trace`, session);
    }

    test("a call alone does not get: nobody can be asked", async () => {
      expect(await elevated(await victim.session())).toMatch(/was denied \(nobody is there/);
      expect(existsSync(join(victim.outside, "trace"))).toBe(false);
    });

    test.each([
      [
        "the tree",
        "for i in 1 2 3; do ollie-9p ls elevate; ollie-9p read elevate/wait & ollie-9p read elevate/pending; echo allow x | ollie-9p write elevate/ctl; done; wait",
      ],
      [
        "o",
        "(o approve --list; echo y | o approve; o approve x; timeout 1 script -qec 'o approve' /dev/null)",
      ],
      [
        "a broker of its own",
        () =>
          `timeout 1 olliesrv elevate --with terminal & OLLIE_ELEVATE_SOCKET=$PWD/e.sock timeout 1 olliesrv elevate --with terminal & wait`,
      ],
      [
        "another server",
        () =>
          "mkdir -p h; HOME=$PWD/h XDG_RUNTIME_DIR=$PWD/h OLLIE_BACKEND=script olliesrv start --yolo; HOME=$PWD/h XDG_RUNTIME_DIR=$PWD/h ollie-9p ls; HOME=$PWD/h XDG_RUNTIME_DIR=$PWD/h olliesrv stop",
      ],
    ])("no call gets another by %s", async (_how, command) => {
      const helper = await victim.session();
      const asking = await victim.session();
      const text = typeof command === "string" ? command : command();
      await victim.begin(`run ${text}`, helper);
      const results: string[] = [];
      for (let i = 0; i < 5; i++) {
        results.push(await elevated(asking));
      }
      await victim.read(`s/${helper}/idlewait`);
      for (const result of results) expect(result).toMatch(/was denied/);
      expect(existsSync(join(victim.outside, "trace"))).toBe(false);
    });

    test("a server that a call starts can do no more than the call", async () => {
      const trace = join(victim.outside, "trace");
      const own = "HOME=$PWD/own XDG_RUNTIME_DIR=$PWD/own/run OLLIE_ADDR=";
      const result = await victim.run(
        `mkdir -p own/run && chmod 700 own/run && ${own} olliesrv start --yolo && echo '$ touch ${trace}' | ${own} o ask; ${own} olliesrv stop`,
      );
      expect(result).not.toContain("touch: done");
      expect(existsSync(trace)).toBe(false);
      expect(await victim.read("version")).toContain("ollie");
    });
  });

  describe("a project's sandbox file", () => {
    const file = () => join(victim.work, ".ollie-sandbox.yaml");
    const wish = () =>
      `filesystem:\\n  rwx: [${victim.outside}]\\nnetwork:\\n  unix: [${victim.socket}]\\ngeneral:\\n  best_effort: true\\n`;

    test("that a call writes opens nothing, and the user is told of it", async () => {
      const session = await victim.session();
      await victim.run(`printf '${wish()}' >.ollie-sandbox.yaml`, session);
      // What is known of a folder counts for a second, in a session.
      const result = await victim.run(
        `cat ${victim.outside}/file; echo x >${victim.outside}/file`,
        await victim.session(),
      );
      expect(result).toMatch(/denied|no such file/i);
      expect(result).toContain(".ollie-sandbox.yaml asks for filesystem.rwx");
      expect(result).toContain("the user has not approved it");
      expect(contentOf(join(victim.outside, "file"))).toBe("untouched\n");
    });

    test.each([
      ["by the command", "olliesrv sandbox approve; olliesrv sandbox approve ."],
      [
        "by the file of approvals",
        'mkdir -p $HOME/.local/state/ollie; echo "{\\"approved\\":{}}" >$HOME/.local/state/ollie/sandbox-approvals.json',
      ],
      ["by another home", "OLLIE_STATE_PATH=$HOME/.local/state/ollie HOME=/nowhere olliesrv sandbox approve"],
    ])("is not approved by a call, %s", async (_how, command) => {
      await victim.run(`printf '${wish()}' >.ollie-sandbox.yaml`);
      const result = await victim.run(command);
      expect(result).toMatch(stopped);
      expect(await victim.run(`cat ${victim.outside}/file`, await victim.session())).not.toContain(
        "untouched",
      );
      expect(existsSync(join(victim.home, ".local/state/ollie/sandbox-approvals.json"))).toBe(false);
    });

    test("that was approved opens nothing once a call has changed it", async () => {
      const session = await victim.session();
      await victim.run("rm -f .ollie-sandbox.yaml", session);
      writeFileSync(file(), "filesystem:\n  ro: [/srv]\n");
      const approved = await victim.server.run([
        join(victim.server.bin, "olliesrv"),
        "sandbox",
        "approve",
        victim.work,
      ]);
      expect(approved).toMatchObject({ status: 0 });
      const before = readFileSync(join(victim.home, ".local/state/ollie/sandbox-approvals.json"), "utf8");
      victim.server.give(file());
      await victim.run(`printf '${wish()}' >.ollie-sandbox.yaml`, session);
      expect(await victim.run(`cat ${victim.outside}/file`, await victim.session())).not.toContain(
        "untouched",
      );
      expect(readFileSync(join(victim.home, ".local/state/ollie/sandbox-approvals.json"), "utf8")).toBe(
        before,
      );
      await victim.run("rm .ollie-sandbox.yaml", session);
    });

    test.each([
      ["a FIFO", "mkfifo .ollie-sandbox.yaml"],
      ["a link", `ln -s /dev/zero .ollie-sandbox.yaml`],
      ["a terabyte", "truncate -s 1T .ollie-sandbox.yaml"],
      [
        "YAML that grows",
        `printf 'a: &a [x,x,x,x,x,x,x,x,x]\\nb: &b [*a,*a,*a,*a,*a,*a,*a,*a,*a]\\nc: &c [*b,*b,*b,*b,*b,*b,*b,*b,*b]\\nd: &d [*c,*c,*c,*c,*c,*c,*c,*c,*c]\\ne: &e [*d,*d,*d,*d,*d,*d,*d,*d,*d]\\nf: [*e,*e,*e,*e,*e,*e,*e,*e,*e]\\n' >.ollie-sandbox.yaml`,
      ],
      ["a folder", "mkdir .ollie-sandbox.yaml"],
    ])("that is %s stops nobody", async (_what, command) => {
      await victim.run(`rm -rf .ollie-sandbox.yaml; ${command}`);
      expect(await victim.run("echo goes on", await victim.session())).toContain("goes on");
      await victim.run("rm -rf .ollie-sandbox.yaml");
    });
  });

  test("the server is well afterwards, and nothing has been made that the user did not make", async () => {
    expect(await victim.read("version")).toContain("protocol: 9P2000");
    expect(readdirSync(victim.outside).sort()).toEqual(["file", "folder", "program"]);
  });
});
