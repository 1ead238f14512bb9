import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { existsSync, realpathSync } from "node:fs";
import { createServer } from "node:net";
import { join } from "node:path";
import { Fault } from "../../src/fault.ts";
import { House, may } from "./house.ts";

let house: House;
beforeEach(() => {
  house = new House();
});
afterEach(() => house.remove());

const refusal = (cwd: string): Fault => {
  try {
    house.confine(cwd);
  } catch (error) {
    expect(error).toBeInstanceOf(Fault);
    return error as Fault;
  }
  throw new Error("was not refused");
};

describe("the default", () => {
  test("gives the working folder and the session's folder for temporary files", () => {
    const { policy } = house.confine();
    expect(may(policy, house.cwd)).toBe("rwx");
    expect(may(policy, join(house.tmp, "tmp/x"))).toBe("rwx");
    expect(may(policy, join(house.tmp, "output/x"))).toBe("r");
    expect(existsSync(join(house.tmp, "tmp"))).toBe(true);
  });

  test("lets the system be read and run, and nothing of it be written", () => {
    const { policy } = house.confine();
    expect(may(policy, "/etc/passwd")).toBe("r");
    expect(may(policy, realpathSync("/bin/sh"))).toBe("rx");
    for (const path of ["/", "/etc", "/usr/bin", "/var", "/home", "/root"])
      expect(may(policy, path)).not.toContain("w");
  });

  test("lets programs on the PATH be run, wherever they are, and not changed", () => {
    const folder = house.dir("../elsewhere/bin");
    house.environment.PATH = `${folder}:/nowhere:relative::${join(house.cwd, "node_modules/.bin")}`;
    const { policy } = house.confine();
    expect(may(policy, join(folder, "program"))).toBe("rx");
    expect(may(policy, join(folder, "../other"))).toBe("");
    expect(house.warnings).toEqual([]);
  });

  test("gives devices one by one, and of /dev itself only its list", () => {
    const { policy } = house.confine();
    expect(may(policy, "/dev/null")).toBe("rw");
    expect(may(policy, "/dev/urandom")).toBe("r");
    expect(may(policy, "/dev/kmsg")).toBe("");
    expect(policy.filesystem.list).toContain("/dev");
  });

  test("gives caches of build tools, but not what lies on the PATH in them", () => {
    for (const path of [
      ".cache/pip",
      ".cache/ollie",
      ".cargo/bin",
      ".cargo/registry",
      "go/bin",
      "go/pkg",
      ".npm",
    ])
      house.dir(path);
    house.file(".cargo/env");
    const { policy } = house.confine();
    const at = (path: string) => may(policy, join(house.home, path));
    expect([".cache/pip", ".cargo/registry", "go/pkg", ".npm"].map(at)).toEqual(["rwx", "rwx", "rwx", "rwx"]);
    expect([".cargo/bin", ".cargo/env", "go/bin"].map(at)).toEqual(["rx", "rx", "rx"]);
    expect(at(".cache/ollie")).toBe("");
    expect([".cache", ".cargo", "go"].map(at)).not.toContain("rwx");
  });

  test("makes the caches of programs that are installed, for their first use", () => {
    house.environment.PATH = house.dir("bin");
    Bun.spawnSync(["chmod", "755", house.file("bin/go", "#!/bin/sh\n")]);
    const { policy } = house.confine();
    expect(may(policy, join(house.home, ".cache/go-build"))).toBe("rwx");
    expect(existsSync(join(house.home, ".npm"))).toBe(false);
  });

  test("says nothing of what this host does not have", () => {
    house.confine();
    expect(house.warnings).toEqual([]);
  });
});

describe("templates", () => {
  test("are filled from the server's environment", () => {
    house.environment.DATA = house.dir("data");
    house.config("default", 'filesystem: { ro: ["{DATA}"], rw: ["{NOT_SET}/x"] }');
    const { policy } = house.confine();
    expect(may(policy, house.environment.DATA)).toBe("r");
    expect(house.warnings.join()).toContain("NOT_SET is not set");
  });

  test("a list of tool folders becomes several, to be read and run", () => {
    const folders = [house.dir("tools"), house.dir("more")];
    house.environment.OLLIE_TOOLS_PATH = folders.join(":");
    const { policy } = house.confine();
    for (const folder of folders) expect(may(policy, folder)).toBe("rx");
  });

  test("what the user names and does not exist is told once", () => {
    const file = house.config("default", "filesystem: { rw: [~/nowhere] }");
    const configs = house.configs();
    for (const listener of ["s/a", "s/b"]) configs.policyFor({ cwd: house.cwd, tmp: house.tmp, listener });
    expect(house.warnings).toEqual([`${file}: filesystem.rw: ~/nowhere: does not exist`]);
  });
});

describe("what is ollie's own", () => {
  test("is given by no grant, whatever configs name", () => {
    house.dir(".config/ollie/memory");
    for (const path of ["agents/a.json", "tools/t", "env"]) house.file(`.config/ollie/${path}`);
    house.file(".local/state/ollie/sessions/x/chat");
    house.dir(".local/state/ollie/tmp/other");
    house.file(".local/bin/o");
    house.config(
      "default",
      `filesystem: { rwx: [${house.folder}, '~', ~/.config/ollie, ~/.config/ollie/env, ${house.state}] }`,
    );
    const { policy } = house.confine();
    const at = (path: string) => may(policy, join(house.home, path));
    for (const path of ["env", "agents/a.json", "tools/t", "sandbox/default.yaml", "."])
      expect(at(join(".config/ollie", path))).not.toContain("w");
    expect(at(".config/ollie/env")).toBe("");
    expect(at(".local/state/ollie/sessions/x/chat")).toBe("");
    expect(at(".local/state/ollie/tmp/other")).toBe("");
    expect(at(".local/state/ollie")).toBe("");
    expect(at(".local/bin/o")).not.toContain("w");
    expect(at(".config/ollie/memory")).toContain("w");
    expect(may(policy, join(house.folder, "run/ollie"))).toBe("");
    expect(house.warnings.join("\n")).toContain("~/.config/ollie/env: is ollie's own and protected");
  });

  test("is hidden as far as it exists", () => {
    const env = house.file(".config/ollie/env");
    const sessions = house.dir(".local/state/ollie/sessions");
    const { policy } = house.confine();
    expect(policy.hidden).toContain(env);
    expect(policy.hidden).toContain(sessions);
    for (const path of policy.hidden) expect(house.tmp.startsWith(`${path}/`)).toBe(false);
  });

  test("a socket that is named among files may be connected to, unless tools could put it there", async () => {
    const [service, own] = [join(house.dir(".service"), "s.sock"), join(house.cwd, "own.sock")];
    const servers = [service, own].map((path) => createServer().listen(path));
    await Promise.all(servers.map((server) => new Promise((resolve) => server.once("listening", resolve))));
    try {
      house.config("default", `filesystem: { ro: [/etc], rw: [${service}, ${own}] }`);
      expect(house.confine().policy.network.unix).toEqual([service]);
      house.config("default", `filesystem: { ro: [${service}] }`);
      expect(house.confine().policy.network.unix).toEqual([]);
    } finally {
      for (const server of servers) server.close();
    }
  });

  test("whoever lets tools have SSH_AUTH_SOCK lets them use the agent", async () => {
    const path = join(house.dir(".agent"), "agent.sock");
    const server = createServer().listen(path);
    await new Promise((resolve) => server.once("listening", resolve));
    try {
      house.environment.SSH_AUTH_SOCK = path;
      expect(house.confine().policy.network.unix).toEqual([]);
      house.config("default", "env: [SSH_AUTH_SOCK]");
      expect(house.confine().policy.network.unix).toEqual([path]);
    } finally {
      server.close();
    }
  });

  test("no rule opens a socket of the server or a broker", async () => {
    const path = join(house.folder, "run/broker.sock");
    house.dir("../run");
    const server = createServer().listen(path);
    await new Promise((resolve) => server.once("listening", resolve));
    try {
      house.config("default", `network: { unix: [${path}] }\nfilesystem: { rw: [${path}] }`);
      expect(house.confine().policy.network.unix).toEqual([]);
    } finally {
      server.close();
    }
  });
});

describe("a grant on the home folder", () => {
  const secret = [".ssh/id", ".gnupg/x", ".aws/credentials", ".mozilla/x"];
  const startup = [".bashrc", ".profile", ".config/autostart/x", ".config/systemd/user/x", ".local/bin/x"];

  test("leaves out keys, and gives what shells run only for reading", () => {
    for (const path of [...secret, ...startup, "notes", ".config/app/x"]) house.file(path);
    const { policy } = house.confine(house.home);
    const at = (path: string) => may(policy, join(house.home, path));
    expect(secret.map(at)).toEqual(secret.map(() => ""));
    expect(startup.map(at)).toEqual(startup.map(() => "rx"));
    expect(["notes", ".config/app/x", "project"].map(at)).toEqual(["rwx", "rwx", "rwx"]);
    // Else a new .bashrc could be made.
    expect(at(".")).not.toContain("w");
    expect(policy.filesystem.list).toContain(house.home);
  });

  test("but a config that names such a place gets it", () => {
    house.file(".ssh/config");
    house.config("default", "filesystem: { ro: [~/.ssh/config], rw: [~/.bashrc] }");
    house.file(".bashrc");
    const { policy } = house.confine();
    expect(may(policy, join(house.home, ".ssh/config"))).toBe("r");
    expect(may(policy, join(house.home, ".bashrc"))).toBe("rw");
  });
});

describe("links", () => {
  test("are followed where tools cannot change them", () => {
    const real = house.dir("../disk/npm");
    house.link(".npm", real);
    expect(may(house.confine().policy, realpathSync(real))).toBe("rwx");
  });

  test("lead nowhere from where tools can write", () => {
    const keys = house.file(".ssh/id");
    house.link("project/data", join(house.home, ".ssh"));
    house.link(".npm/pip", join(house.home, ".ssh"));
    const file = house.config("default", 'filesystem: { rwx: ["{CWD}/data", ~/.npm/pip] }');
    const { policy } = house.confine();
    expect(may(policy, keys)).toBe("");
    expect(house.warnings.join("\n")).toContain(`${file}: filesystem.rwx: {CWD}/data: leads to`);
  });

  test("a home that is reached by a link is protected under both names", () => {
    const state = house.file(".local/state/ollie/sessions/x/chat");
    const alias = join(house.folder, "alias");
    house.link("../alias", house.home);
    house.environment.HOME = alias;
    const { policy } = house.confine(alias);
    expect(may(policy, state)).toBe("");
    expect(may(policy, house.cwd)).toBe("rwx");
  });
});

describe("a working folder is refused that", () => {
  test.each(["/", "."])("holds the home folder: %s", (cwd) => {
    const fault = refusal(join(house.folder, cwd === "/" ? "../../../../../.." : cwd));
    expect(fault.kind).toBe("invalid");
    expect(fault.message).toContain("choose a project's folder as cwd");
  });

  test.each([".config/ollie", ".config/ollie/tools", ".local/state/ollie/sessions/x"])(
    "lies in %s",
    (path) => {
      const fault = refusal(house.dir(path));
      expect(fault.kind).toBe("denied");
      expect(fault.message).toContain("choose a folder outside of it as cwd");
    },
  );

  test("does not exist", () => {
    expect(refusal(join(house.home, "gone")).kind).toBe("missing");
  });

  test("but not one in the session's own folder", () => {
    expect(may(house.confine(house.tmp).policy, join(house.tmp, "tmp"))).toBe("rwx");
  });
});
