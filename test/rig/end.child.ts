/** Makes a rig and waits to be killed. */
import { startClient } from "./rig.ts";

const client = await startClient();
await client.startHost({ link: {} });
await client.startHost({ root: "arm64" });
await client.run(["sh", "-c", "setsid sleep 1000 >/dev/null 2>&1 &"]);
console.log("ready");
await Bun.sleep(1_000_000);
