/** Where a broker listens and olliesrv looks for one. */
import { dirname, join } from "node:path";
import { defaultAddress } from "../ninep/dial.ts";

/** `OLLIE_ELEVATE_SOCKET`, else `elevate.sock` in the private folder that holds the server's own socket by default. */
export function elevateSocket(environment: Record<string, string | undefined>): string {
  if (environment.OLLIE_ELEVATE_SOCKET) return environment.OLLIE_ELEVATE_SOCKET;
  const address = defaultAddress({ XDG_RUNTIME_DIR: environment.XDG_RUNTIME_DIR }, process.getuid!());
  return join(dirname(address.slice("unix!".length)), "elevate.sock");
}
