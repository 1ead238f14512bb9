import { describe, expect, test } from "bun:test";
import { Fault } from "../../src/fault.ts";
import { parseSandboxConfig, shippedDefault } from "../../src/sandbox/config.ts";

const refusal = (text: string): string => {
  try {
    parseSandboxConfig(text, "my.yaml");
  } catch (error) {
    expect(error).toBeInstanceOf(Fault);
    return (error as Fault).message;
  }
  throw new Error("was not refused");
};

describe("a sandbox config", () => {
  test("has the keys of the seed", () => {
    const config = parseSandboxConfig(
      `
filesystem:
  ro: [/etc]
  rox: ["{HOME}/bin"]
  rw: ["{CWD}"]
  rwx: [~/.cache]
env: [PATH, "LC_*"]
network: { unrestricted: false, bind_tcp: [8080], connect_tcp: [443], unix: [/run/docker.sock] }
general: { best_effort: true, log_level: debug }
`,
      "my.yaml",
    );
    expect(config.filesystem).toEqual({
      ro: ["/etc"],
      rox: ["{HOME}/bin"],
      rw: ["{CWD}"],
      rwx: ["~/.cache"],
    });
    expect(config.env).toEqual(["PATH", "LC_*"]);
    expect(config.network).toEqual({
      unrestricted: false,
      bind_tcp: [8080],
      connect_tcp: [443],
      unix: ["/run/docker.sock"],
    });
    expect(config.general).toEqual({ best_effort: true, log_level: "debug" });
  });

  test.each(["", "# nothing\n", "filesystem:\n", "filesystem:\n  ro:\nenv:\n"])(
    "may be empty: %j",
    (text) => {
      const { filesystem, env } = parseSandboxConfig(text, "my.yaml");
      expect([...Object.values(filesystem).flat(), ...env]).toEqual([]);
    },
  );

  test.each([
    ["files: {}", "my.yaml: unknown key files: known are extends filesystem env network general"],
    ["filesystem: { wr: [/x] }", "my.yaml: unknown key filesystem.wr: known are ro rox rw rwx"],
    ["network: { connect: [1] }", "my.yaml: unknown key network.connect: known are unrestricted bind_tcp"],
    ["general: { yolo: true }", "my.yaml: unknown key general.yolo: known are best_effort log_level"],
    ["filesystem: { ro: /etc }", "my.yaml: filesystem.ro: must be a list"],
    ["filesystem: { ro: [etc] }", "my.yaml: filesystem.ro.0: must be an absolute path"],
    ["filesystem: { ro: [~] }", 'my.yaml: filesystem.ro.0: is empty: write "~" in quotes'],
    ["filesystem: { ro: [~root/x] }", "my.yaml: filesystem.ro.0: must be an absolute path"],
    ["network: { connect_tcp: [70000] }", "my.yaml: network.connect_tcp.0: must be a port"],
    ["network: { unrestricted: maybe }", "my.yaml: network.unrestricted: must be true or false"],
    ["env: [A=1]", "my.yaml: env.0: must be the name of a variable"],
    ["- a", "my.yaml: must be keys and values"],
    ["env: [A", "my.yaml: not YAML: "],
    ["env: [A]\nenv: [B]", "my.yaml: not YAML: Map keys must be unique"],
  ])("is refused with file and key: %s", (text, message) => {
    expect(refusal(text)).toStartWith(message);
  });

  test("cannot be blown up by aliases", () => {
    const lines = ["a: &a [/x,/x,/x,/x,/x,/x,/x,/x,/x]"];
    for (let i = 1; i < 12; i++) {
      const [before, name] = [String.fromCharCode(96 + i), String.fromCharCode(97 + i)];
      lines.push(`${name}: &${name} [${Array(9).fill(`*${before}`).join(",")}]`);
    }
    expect(refusal(lines.join("\n"))).toStartWith("my.yaml: not YAML: ");
  });

  test("the shipped default asks for no agent of keys and for no sandbox that is none", () => {
    const { env, general, network, filesystem } = shippedDefault().config;
    expect(env).not.toContain("SSH_AUTH_SOCK");
    expect(general.best_effort).toBe(false);
    expect(network.unrestricted).toBe(true);
    expect(Object.values(filesystem).flat()).not.toContain("/dev");
  });
});
