/** Whether the promise resolves within so many milliseconds. It goes on if it does not. */
export function inTime(promise: Promise<unknown>, milliseconds: number): Promise<boolean> {
  const { promise: late, resolve } = Promise.withResolvers<boolean>();
  const timer = setTimeout(resolve, milliseconds, false);
  return Promise.race([promise.then(() => true), late]).finally(() => clearTimeout(timer));
}
