/** Kinds of values that more than one family of messages has. */
import { z } from "zod";

/** Made by the client, so that it can ask for an operation whose acceptance it has not seen: a UUID, version 7 (RFC 9562). */
export const id = z.string().regex(/^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/);
export const sha256 = z.string().regex(/^[0-9a-f]{64}$/);
/** Seconds. */
export const seconds = z.number().positive();
export const base64 = z.string().regex(/^[A-Za-z0-9+/]*={0,2}$/);
/** A path, or its bytes where they are no UTF-8. */
export const pathName = z.union([z.string(), z.strictObject({ b64: base64 })]);
export const variables = z.record(z.string(), z.string());
