/** Opens a store, says how that went, and keeps it until it is killed. */
import { Store } from "../../src/store/store.ts";

try {
  await Store.open(process.argv[2]!);
  console.log("open");
  setInterval(() => {}, 1000);
} catch (error) {
  console.log((error as Error).message);
}
