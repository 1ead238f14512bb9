/** `session.json`: what a session is, apart from its agents and its plan. */
import { z } from "zod";

const strings = z.record(z.string(), z.string());

/** Fields of a newer version are kept. */
export const sessionSchema = z.looseObject({
  v: z.literal(1),
  id: z.string(),
  /** Milliseconds since 1970. */
  created: z.number(),
  /** The session keys of `cfg` that are set (`cwd`, `remote`, `sandbox`, `share`); the name is the folder's. */
  cfg: strings,
  /** What `env` gives to the session's tools. */
  env: strings,
});

export type SessionJson = z.infer<typeof sessionSchema>;
