/** The shipped files of `data/`. */
import { readdirSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { compiled } from "./version.ts";

/** Path below `data/` → content, put in by build.ts. Texts only: there are no others. */
declare const OLLIE_DATA: Record<string, string>;

/** All shipped files by their path below `data/`, sorted. */
export function shippedData(): [path: string, content: string][] {
  return Object.entries(compiled ? OLLIE_DATA : readCheckout());
}

function readCheckout(): Record<string, string> {
  const folder = join(import.meta.dir, "../../data");
  const paths = readdirSync(folder, { recursive: true, encoding: "utf8" })
    .filter((path) => statSync(join(folder, path)).isFile())
    .sort();
  return Object.fromEntries(paths.map((path) => [path, readFileSync(join(folder, path), "utf8")]));
}
