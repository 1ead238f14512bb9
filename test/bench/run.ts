/** Measures everything and prints one table: `npm run bench [-- NAME …]`. Fails when a figure misses what it should be. */
import { chat } from "./chat.ts";
import { type Figure, reached, row, table } from "./figure.ts";
import { hands } from "./hands.ts";
import { ninep } from "./ninep.ts";
import { remote } from "./remote.ts";
import { sessions } from "./sessions.ts";
import { startup } from "./startup.ts";
import { store } from "./store.ts";
import { turn } from "./turn.ts";

const measurements: Record<string, () => Promise<Figure[]>> = {
  startup,
  turn,
  hands,
  chat,
  sessions,
  ninep,
  store,
  remote,
};

const asked = process.argv.slice(2);
const unknown = asked.find((name) => !Object.hasOwn(measurements, name));
if (unknown) {
  console.error(`no measurement ${unknown}: there are ${Object.keys(measurements).join(", ")}`);
  process.exit(2);
}

const figures: Figure[] = [];
for (const name of asked.length > 0 ? asked : Object.keys(measurements)) {
  console.error(`measuring ${name} …`);
  figures.push(...(await measurements[name]!()));
}
console.log(table([["figure", "measured", "should be", ""], ...figures.map(row)]));
if (!figures.every(reached)) process.exitCode = 1;
