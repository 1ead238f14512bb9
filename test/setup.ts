/** Before all tests: temporary folders of this run go into one, which goes with it. */
import { afterAll } from "bun:test";
import { chmodSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

const folder = mkdtempSync(join(tmpdir(), "ollie-"));
// Some tests run programs as another user, who has to get to what is in it.
chmodSync(folder, 0o711);
process.env.TMPDIR = folder;
afterAll(() => rmSync(folder, { recursive: true, force: true }));
