/**
 * A daemon of a session that will be killed: opens the session in the folder `argv[2]`, starts the operation `argv[3]` (JSON) and says so on
 * stdout, one word a line: `open`, `accepted`, `ended`.
 */

import type { OpStart } from "../../../../src/remote/protocol/operation.ts";
import { ended, Host } from "./ground.ts";

const host = new Host(process.argv[2]!);
host.tool("count", "echo once >> count; sleep 0.2; echo done", { description: "counts" });
const operations = await host.open();
console.log("open");
const asked = JSON.parse(process.argv[3]!) as OpStart;
await operations.start(asked);
console.log("accepted");
await ended(operations, asked.opId);
console.log("ended");
