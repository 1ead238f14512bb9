/** What a server keeps of its session on another host, so that it finds it again. */
import { z } from "zod";

export const locator = z.object({
  /** As `remote=` has it. */
  target: z.string(),
  /** SHA256:… of the host, where SSH has told it. */
  hostKey: z.string().optional(),
  sessionId: z.string(),
  /** SHA-256 of the session's daemon. */
  digest: z.string(),
  policyHash: z.string(),
  envRefHash: z.string(),
  /** Of the last attachment; the next one follows it. */
  epoch: z.int(),
  /** 32 bytes, base64: what grants are sealed with. To be kept as other secrets are, in a file of mode 0600. */
  key: z.string(),
  /** The working folder there, links resolved. */
  cwd: z.string(),
});
export type Locator = z.infer<typeof locator>;
