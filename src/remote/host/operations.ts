/** Runs the operations of a session. */
import { coded } from "../protocol/errors.ts";
import type { Operations, OperationsGround } from "./operations-seam.ts";

export async function createOperations(_ground: OperationsGround): Promise<Operations> {
  throw coded("op.unavailable", "operations cannot be run by this program");
}
