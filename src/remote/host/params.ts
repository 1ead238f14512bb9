import type { z } from "zod";
import { coded } from "../protocol/errors.ts";

/** Reads what a request carries. @throws CodedFault `op.params` that names what is wrong */
export function parsed<S extends z.ZodType>(method: string, schema: S, params: unknown): z.infer<S> {
  const result = schema.safeParse(params ?? {});
  if (result.success) return result.data;
  const [issue] = result.error.issues;
  const where = issue?.path.join(".") || "params";
  throw coded("op.params", `${method}: ${where}: ${issue?.message ?? "makes no sense"}`);
}
