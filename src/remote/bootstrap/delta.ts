/** An upgrade: the new program put together from chunks of an older one that the host has, and from those that it has not. */

export interface Delta {
  /** For the script: `o:SKIP:COUNT` takes from the old program, `n:SKIP:COUNT` from what is sent; in chunks. */
  recipe: string;
  /** Which chunks are to be sent. */
  send: number[];
}

/** Steps of a recipe that a line may have. */
const most = 100;

/** @returns undefined where it would save nothing worth the while */
export function delta(old: readonly string[], wanted: readonly string[]): Delta | undefined {
  const there = new Map(old.map((hash, index) => [hash, index]));
  const steps: { from: "o" | "n"; skip: number; count: number }[] = [];
  const send: number[] = [];
  for (const [index, hash] of wanted.entries()) {
    // Preferred where it stands, so that runs are long.
    const at = old[index] === hash ? index : there.get(hash);
    const from = at === undefined ? "n" : "o";
    const skip = at ?? send.length;
    if (at === undefined) send.push(index);
    const last = steps.at(-1);
    if (last?.from === from && last.skip + last.count === skip) last.count++;
    else steps.push({ from, skip, count: 1 });
  }
  if (steps.length > most || send.length > wanted.length / 2) return undefined;
  return { recipe: steps.map(({ from, skip, count }) => `${from}:${skip}:${count}`).join(","), send };
}
