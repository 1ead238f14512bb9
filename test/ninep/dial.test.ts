/** Addresses. */
import { afterEach, describe, expect, test } from "bun:test";
import { chmodSync, mkdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import { clientAddress, defaultAddress, dial, parseAddress, serviceAddress } from "../../src/ninep/dial.ts";
import { cleanUp, temporary } from "./serve.ts";

afterEach(cleanUp);

describe("addresses", () => {
  test.each([
    ["unix!/run/user/1000/ollie/9p", { net: "unix", path: "/run/user/1000/ollie/9p" }],
    ["unix!/tmp/a!b", { net: "unix", path: "/tmp/a!b" }],
    ["tcp!example.org!564", { net: "tcp", host: "example.org", port: 564 }],
    ["tcp!example.org:5640", { net: "tcp", host: "example.org", port: 5640 }],
    ["tcp!example.org!9fs", { net: "tcp", host: "example.org", port: 564 }],
    ["tcp!example.org", { net: "tcp", host: "example.org", port: 564 }],
    ["tcp![::1]!564", { net: "tcp", host: "::1", port: 564 }],
    ["tcp![fe80::1%eth0]:564", { net: "tcp", host: "fe80::1%eth0", port: 564 }],
    ["tls!10.0.0.1!9000", { net: "tls", host: "10.0.0.1", port: 9000 }],
    ["ssh!host", { net: "ssh", host: "host" }],
    ["ssh!glenda@host", { net: "ssh", host: "host", user: "glenda" }],
    ["ssh!glenda@host!/run/9p", { net: "ssh", host: "host", user: "glenda", path: "/run/9p" }],
  ])("%s", (text, address) => {
    expect(parseAddress(text)).toEqual(address as never);
  });

  test.each([
    "",
    "unix",
    "unix!",
    "/tmp/socket",
    "udp!host!1",
    "tcp!::1!564",
    "tcp!host!0",
    "tcp!host!65536",
    "tcp!host!x",
    "ssh!@h",
    "tcp!a!b!c",
  ])("%p is refused with what would be right", (text) => {
    expect(() => parseAddress(text)).toThrow(/is no address .*write unix!PATH/);
  });

  test.each(["tls!127.0.0.1!564", "ssh!host"])("%s is understood, and not supported yet", async (address) => {
    await expect(dial(address)).rejects.toThrow("not supported yet");
  });

  test("nobody there: the error says so", async () => {
    const path = join(temporary(), "none");
    await expect(dial(`unix!${path}`)).rejects.toThrow(
      `no server answers at unix!${path}: there is no such socket`,
    );
  });
});

describe("where the server is", () => {
  test("as the environment says, else in the runtime folder, else below /tmp", () => {
    expect(defaultAddress({ OLLIE_ADDR: "tcp!h!1", XDG_RUNTIME_DIR: "/run/user/7" }, 7)).toBe("tcp!h!1");
    expect(defaultAddress({ XDG_RUNTIME_DIR: "/run/user/7" }, 7)).toBe("unix!/run/user/7/ollie/9p");
    expect(defaultAddress({}, 7)).toBe("unix!/tmp/ollie-7/9p");
  });

  test("clients do not look below /tmp for a server that was to be somewhere else", () => {
    const folder = temporary();
    expect(clientAddress({ XDG_RUNTIME_DIR: folder }, process.geteuid!())).toBe(`unix!${folder}/ollie/9p`);
  });

  test("a namespace folder counts if it is named, or if it is there and private", () => {
    expect(serviceAddress({ NAMESPACE: "/ns" }, 7)).toBe("unix!/ns/ollie");
    expect(serviceAddress({}, 7)).toBeUndefined();
    const user = `u${process.pid}`;
    const folder = `/tmp/ns.${user}.:0`;
    const env = { USER: user, DISPLAY: ":0.0" };
    const uid = process.geteuid!();
    expect(serviceAddress(env, uid)).toBeUndefined();
    mkdirSync(folder, { mode: 0o700 });
    try {
      expect(serviceAddress(env, uid)).toBe(`unix!${folder}/ollie`);
      expect(serviceAddress(env, uid + 1)).toBeUndefined();
      chmodSync(folder, 0o755);
      expect(serviceAddress(env, uid)).toBeUndefined();
    } finally {
      rmSync(folder, { recursive: true });
    }
  });
});
