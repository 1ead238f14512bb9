import type { Paths } from "../config/paths.ts";

/** What every policy of a server is made from. */
export interface SandboxGround {
  paths: Paths;
  /** The server's environment, for templates such as `{GOPATH}`. Sessions' own variables are not trusted with paths. */
  environment: Readonly<Record<string, string | undefined>>;
  /** Sockets of the server and of whoever answers for the user, and what lies beside them and is nobody else's; none is ever granted. */
  sockets: readonly string[];
  /** Whether mounts cover what a program is not to see (`src/sandbox/launch/mounts.ts`), also in a folder that it is given. */
  covers?: boolean;
}
