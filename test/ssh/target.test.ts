/** What may stand for a host, and what would be something else. */
import { describe, expect, test } from "bun:test";
import { parseTarget, writeTarget } from "../../src/ssh/target.ts";

describe("targets", () => {
  test.each([
    ["build", { host: "build" }],
    ["alice@build.example", { user: "alice", host: "build.example" }],
    ["alice@build.example:2222", { user: "alice", host: "build.example", port: 2222 }],
    ["DOM\\alice@corp@build", { user: "DOM\\alice@corp", host: "build" }],
    ["fd00::2", { host: "fd00::2" }],
    ["[fd00::2]", { host: "fd00::2" }],
    ["root@[fd00::2]:22", { user: "root", host: "fd00::2", port: 22 }],
    ["[host]:22", { host: "host", port: 22 }],
    ["fe80::1%eth0", { host: "fe80::1%eth0" }],
    ["10.0.0.1:65535", { host: "10.0.0.1", port: 65535 }],
    ["bücher.example", { host: "bücher.example" }],
  ])("%s", (name, expected) => {
    expect(JSON.parse(JSON.stringify(parseTarget(name)))).toEqual(expected);
    expect(parseTarget(writeTarget(parseTarget(name)))).toEqual(parseTarget(name));
  });

  test.each([
    ["", "no name of a host"],
    ["-oProxyCommand=touch /tmp/x", "option"],
    ["alice@-oProxyCommand=x", "option"],
    ["-l@host", "name of a user"],
    ["@host", "name of a user"],
    ["a b@host", "name of a user"],
    ["alice@", "name of a host"],
    ["host;id", "name of a host"],
    ["$(id)", "name of a host"],
    ["`id`@host", "name of a user"],
    ["host\nHost *", "name of a host"],
    ["host name", "name of a host"],
    ["host\u0000", "name of a host"],
    ["host\u202etxt", "name of a host"],
    ["a/b", "name of a host"],
    ["*", "name of a host"],
    ["host,other", "name of a host"],
    ["host:0", "ports"],
    ["host:65536", "ports"],
    ["host:", "ports"],
    ["host:ssh", "IPv6"],
    ["[::1", "IPv6"],
    ["[host", "name of a host"],
    ["1:2:3", "IPv6"],
  ])("%j is refused", (name, why) => {
    expect(() => parseTarget(name)).toThrow(why);
    expect(() => parseTarget(name)).toThrow("write [user@]host[:port]");
  });
});
