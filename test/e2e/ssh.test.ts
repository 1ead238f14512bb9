/** The compiled server's part in SSH: what it is started for by itself and by ssh, and what must not be in it. */
import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import { mkdtempSync, readFileSync, rmSync, symlinkSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Deadline } from "../../src/ssh/deadline.ts";
import { AskpassBroker } from "../../src/ssh/openssh/askpass.ts";
import { names } from "../../src/ssh/openssh/folder.ts";
import { lacksPrograms } from "../needs.ts";
import { People } from "../ssh/server.ts";
import { build, dist } from "./harness.ts";

setDefaultTimeout(300_000);
const folder = mkdtempSync(join(tmpdir(), "ollie-ssh-"));
const olliesrv = join(dist, "olliesrv");
beforeAll(build);
afterAll(() => rmSync(folder, { recursive: true, force: true }));

describe("olliesrv", () => {
  test("has ssh2 in it, and no machine code of any package", () => {
    const program = readFileSync(olliesrv).toString("latin1");
    expect(program).toContain("diffie-hellman-group14-sha256");
    expect(program.match(/\$bunfs\/root\/[\w./@-]*\.node\b/g)).toBeNull();
  });

  test.skipIf(lacksPrograms("ssh-keygen"))("opens keys with a passphrase", async () => {
    const key = join(folder, "key");
    Bun.spawnSync(["ssh-keygen", "-q", "-t", "ed25519", "-N", "open sesame", "-f", key], {
      env: { ...process.env },
    });
    const ask = async (passphrase: string) => {
      const request = {
        key: readFileSync(key, "base64"),
        passphrase: Buffer.from(passphrase).toString("base64"),
      };
      const child = Bun.spawn([olliesrv, "ssh-key"], {
        env: {},
        stdin: Buffer.from(JSON.stringify(request)),
      });
      return (await child.stdout.json()) as { public?: string; error?: string };
    };
    expect((await ask("open sesame")).public).toBe(readFileSync(`${key}.pub`, "utf8").split(" ")[1]!);
    expect((await ask("wrong")).error).toContain("passphrase");
  });

  test("asks what ssh wants to know, under the name that ssh starts it by", async () => {
    const people = new People(["geheim ü"]);
    const deadline = new Deadline(60_000, () => {});
    const broker = await AskpassBroker.open(folder, people, "host", "ask", deadline);
    const link = join(folder, names.program);
    symlinkSync(olliesrv, link);
    const ask = async () => {
      const child = Bun.spawn([link, "Password: "], { env: { SSH_ASKPASS: link } });
      return { text: await child.stdout.text(), code: await child.exited };
    };
    try {
      expect(await ask()).toEqual({ text: "geheim ü\n", code: 0 });
      expect(people.asked).toEqual(["Password: "]);
      // Nobody answers.
      expect(await ask()).toEqual({ text: "", code: 1 });
    } finally {
      broker.close();
      deadline.end();
    }
    // Nobody is there any more.
    expect(await ask()).toEqual({ text: "", code: 1 });
  });
});
