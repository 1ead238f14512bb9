/** Entry point of a job's supervisor in a checkout; a compiled binary does this itself. */
import { supervise } from "./supervisor.ts";

await supervise();
process.exit(0);
