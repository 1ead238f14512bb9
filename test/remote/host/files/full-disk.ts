/** Writes over a file on a disk on which the new one has no place; run by files.test.ts. */
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileMethods } from "../../../../src/remote/host/files/methods.ts";
import { Workspace } from "../../../../src/remote/host/files/workspace.ts";
import { fromHard } from "../../../../src/remote/policy/effective.ts";
import { openPolicy } from "../../../../src/remote/policy/session-policy.ts";

const root = process.argv[2]!;
const policy = openPolicy(
  fromHard({ max_write_bytes: 8_000_000 }),
  {},
  { home: "/", environment: {}, folder: "/dev/shm" },
);
writeFileSync(join(root, "f"), "old");
const { schema, run } = fileMethods["file.write"]!;
const params = schema.parse({ path: "f", text: "x".repeat(4_000_000) });
const error = (await run(new Workspace(root, policy), params as never).catch((error) => error)) as {
  code: string;
};
console.log(
  JSON.stringify({ code: error.code, old: readFileSync(join(root, "f"), "utf8"), names: readdirSync(root) }),
);
