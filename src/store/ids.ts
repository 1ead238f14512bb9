/** An id that is unique everywhere and sorts by the time it was made (UUID version 7, RFC 9562). */
export function newId(): string {
  return Bun.randomUUIDv7();
}
