/** Ids that sort by the time they were made, also within one millisecond of one process. */

const letters = "0123456789abcdefghjkmnpqrstvwxyz"; // Crockford's base 32: no letter looks like a digit
let last = 0;

/** Ten characters of time, to 1/32 ms, then four random ones; a file name, and safe in a shell. */
export function newId(): string {
  const now = Math.max(Date.now() * 32, last + 1);
  last = now;
  let id = "";
  for (let rest = now, i = 0; i < 10; i++, rest = Math.floor(rest / 32)) id = letters[rest % 32] + id;
  for (const byte of crypto.getRandomValues(new Uint8Array(4))) id += letters[byte % 32];
  return id;
}
