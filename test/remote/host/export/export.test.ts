import { afterEach, expect, test } from "bun:test";
import { createHash } from "node:crypto";
import {
  chmodSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  statSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { Exports } from "../../../../src/remote/host/export/export.ts";
import { sessionExport } from "../../../../src/remote/protocol/exports.ts";
import { lacksPrograms } from "../../../needs.ts";
import { type Ground, ground } from "../files/ground.ts";

const grounds: Ground[] = [];
afterEach(() => {
  for (const one of grounds.splice(0)) one.close();
});

function made(hard: Parameters<typeof ground>[0] = {}) {
  const one = ground(hard);
  grounds.push(one);
  const folder = join(one.work, "../session");
  mkdirSync(folder, { recursive: true });
  return { ...one, folder, exports: new Exports(folder, one.work, one.workspace) };
}

const sha = (bytes: Buffer) => createHash("sha256").update(bytes).digest("hex");
const ask = (params: Record<string, unknown>) => sessionExport.parse(params);

async function whole({ exports }: ReturnType<typeof made>, format: "tar" | "bundle", bytes = 1000) {
  const pieces: Buffer[] = [];
  let answer = await exports.piece(ask({ format, bytes }));
  const { size } = answer;
  for (;;) {
    const piece = Buffer.from(answer.data, "base64");
    expect(answer.sha256).toBe(sha(piece));
    pieces.push(piece);
    if (answer.eof) break;
    answer = await exports.piece(ask({ export: answer.export, off: answer.off + piece.length, bytes }));
  }
  const file = Buffer.concat(pieces);
  expect([file.length, sha(file)]).toEqual([size, answer.export]);
  return { file, answer };
}

function run(words: string[], cwd: string, stdin?: Uint8Array) {
  const env = {
    PATH: process.env.PATH!,
    HOME: cwd,
    GIT_AUTHOR_NAME: "a",
    GIT_AUTHOR_EMAIL: "a@b",
    GIT_COMMITTER_NAME: "a",
    GIT_COMMITTER_EMAIL: "a@b",
  };
  const { exitCode, stdout, stderr } = Bun.spawnSync(words, { cwd, env, stdin });
  if (exitCode !== 0) throw new Error(`${words.join(" ")}: ${stderr}`);
  return stdout.toString();
}

function unpack(file: Buffer, into: string): void {
  mkdirSync(into);
  run(["tar", "-xf", "-"], into, Bun.zstdDecompressSync(file));
}

/** Of every kind something. */
function fill(work: string): void {
  const long = `${"long-name-".repeat(12)}/${"deep/".repeat(30)}`;
  mkdirSync(join(work, long), { recursive: true });
  writeFileSync(join(work, long, "file"), "deep");
  writeFileSync(join(work, "script"), "#!/bin/sh\n");
  chmodSync(join(work, "script"), 0o755);
  writeFileSync(join(work, "été"), "accents");
  writeFileSync(Buffer.concat([Buffer.from(`${work}/`), Buffer.from([0xff, 0x41])]), "odd");
  symlinkSync("t".repeat(150), join(work, "long-link"));
  writeFileSync(join(work, "big"), Buffer.alloc(1_000_000, "0123456789"));
  writeFileSync(join(work, "empty"), "");
  writeFileSync(join(work, ".env"), "SECRET=1");
}

test.skipIf(lacksPrograms("tar"))(
  "an archive has the files as they are, and none that is denied",
  async () => {
    const one = made();
    fill(one.work);
    const { file, answer } = await whole(one, "tar", 50_000);
    const into = join(one.work, "../unpacked");
    unpack(file, into);
    expect(answer.left).toBe(1);
    expect(existsSync(join(into, ".env"))).toBe(false);
    const names = (folder: string) =>
      (readdirSync(folder, { recursive: true, encoding: "buffer" }) as Buffer[])
        .map((name) => name.toString("latin1"))
        .sort();
    expect(names(into)).toEqual(names(one.work).filter((name) => name !== ".env"));
    expect(readFileSync(join(into, "big"))).toEqual(readFileSync(join(one.work, "big")));
    expect(readFileSync(join(into, "été"), "utf8")).toBe("accents");
    expect(readlinkSync(join(into, "long-link"))).toBe("t".repeat(150));
    expect(readlinkSync(join(into, "up"))).toBe("../outside/secret");
    expect(statSync(join(into, "script")).mode & 0o777).toBe(0o755);
  },
);

test("the same files give the same archive", async () => {
  const [one, two] = [made(), made()];
  for (const { work } of [one, two]) fill(work);
  utimesSync(join(two.work, "big"), 1, 1);
  const first = await whole(one, "tar", 100_000);
  expect((await whole(two, "tar", 100_000)).answer.export).toBe(first.answer.export);
  writeFileSync(join(two.work, "empty"), "x");
  expect((await whole(two, "tar", 100_000)).answer.export).not.toBe(first.answer.export);
});

test("an export is read on where it was left, also by another process", async () => {
  const one = made();
  fill(one.work);
  const first = await one.exports.piece(ask({ bytes: 10 }));
  const other = new Exports(one.folder, one.work, one.workspace);
  writeFileSync(join(one.work, "later"), "x");
  const second = await other.piece(ask({ export: first.export, off: 10 }));
  const file = Buffer.concat([first.data, second.data].map((data) => Buffer.from(data, "base64")));
  expect(second.eof).toBe(true);
  expect(sha(file)).toBe(first.export);
});

test("one that is not there any more is told as that", async () => {
  const one = made();
  const code = (params: Record<string, unknown>) =>
    one.exports.piece(ask(params)).then(
      () => "",
      (error) => error.code,
    );
  expect(await code({ export: "0".repeat(64) })).toBe("session.no_export");
  const { export: name, size } = await one.exports.piece(ask({}));
  expect(await code({ export: name, off: size + 1 })).toBe("session.no_export");
  expect(await code({ format: "bundle" })).toBe("session.no_git");
});

test.skipIf(lacksPrograms("git"))(
  "a bundle has the commits, and no program of the repository's configuration is run for it",
  async () => {
    const one = made();
    run(["git", "init", "-q", "-b", "main"], one.work);
    run(["git", "add", "src"], one.work);
    run(["git", "commit", "-qm", "first"], one.work);
    const pwned = join(one.work, "../pwned");
    const evil = join(one.work, "evil");
    writeFileSync(evil, `#!/bin/sh\ntouch ${pwned}\n`, { mode: 0o755 });
    for (const key of ["core.fsmonitor", "core.sshCommand", "core.pager", "pack.packSizeLimit"])
      run(["git", "config", key, key.startsWith("pack") ? "0" : evil], one.work);
    writeFileSync(join(one.work, ".git/hooks/post-checkout"), `#!/bin/sh\ntouch ${pwned}\n`, { mode: 0o755 });
    const { file, answer } = await whole(one, "bundle");
    expect(existsSync(pwned)).toBe(false);
    const outside = join(one.work, "../clone");
    writeFileSync(`${outside}.bundle`, file);
    run(["git", "clone", "-q", `${outside}.bundle`, outside], join(one.work, ".."));
    expect(readFileSync(join(outside, "src/a.txt"), "utf8")).toBe("one\ntwo\n");
    expect(run(["git", "rev-parse", "HEAD"], outside).trim()).toBe(answer.head!);
  },
);

test("where git is not allowed there is no bundle", async () => {
  const one = made({ allowed_programs: ["cargo"] });
  mkdirSync(join(one.work, ".git"));
  await expect(one.exports.piece(ask({ format: "bundle" }))).rejects.toMatchObject({
    code: "policy.program",
  });
  expect(readdirSync(join(one.folder, "export"))).toEqual([]);
});
