import { afterEach } from "bun:test";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { ServicePool } from "../../src/tools/service.ts";
import type { CallContext } from "../../src/tools/tool.ts";
import { pidsIn } from "../exec/helper.ts";
import { Workshop } from "./helper.ts";

const pools: ServicePool[] = [];
afterEach(async () => {
  for (const pool of pools.splice(0)) await pool.close();
});

/** A session whose services end with the test. */
export function session(env: Record<string, string> = {}, more: Partial<CallContext> = {}): Workshop {
  const services = new ServicePool();
  pools.push(services);
  return new Workshop(undefined, { services, env, ...more });
}

/** A session in which `.fake` files have the language server lsp-fake.ts, behaving as the words say. */
export function fakeSession(
  behaviour: string[] = [],
  spec: object = {},
  files: Record<string, string> = { "a.fake": "one\n" },
): Workshop {
  const shop = session({ OLLIE_LSP: "" });
  shop.ctx.env.OLLIE_LSP = join(shop.dir, "lsp.json");
  const command = [process.execPath, join(import.meta.dir, "lsp-fake.ts")];
  const fake = { command, languages: { ".fake": "fake" }, install: "buy one", ...spec };
  writeFileSync(shop.ctx.env.OLLIE_LSP, JSON.stringify({ fake }));
  shop.write("behaviour", behaviour.join("\n"));
  for (const [name, text] of Object.entries(files)) shop.write(name, text);
  return shop;
}

/** Of all fake servers that were started in the session's folder. */
export function startsOf(shop: Workshop): number[] {
  return pidsIn(shop.path("starts"));
}

export interface Knowledge {
  version: number;
  text: string;
  language: string;
  position: { line: number; character: number };
  told: string[];
  answers: Record<string, unknown>;
}

/** What the fake server knows, and the notes of the result. */
export async function hover(shop: Workshop, place: object = {}): Promise<Knowledge & { notes: string[] }> {
  const text = await shop.ok("lsp_hover", { path: "a.fake", line: 1, column: 1, ...place });
  const [, json] = /```json\n(.*)\n```/.exec(text)!;
  return { ...JSON.parse(json!), notes: text.match(/^\[.*\]$/gm) ?? [] };
}
