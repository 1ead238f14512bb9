/** Entry point of TypeScript tools in a checkout; a compiled binary does this itself. */
import { runToolFile } from "./runner.ts";

await runToolFile(process.argv[2]!);
