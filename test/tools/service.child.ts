/** A server's part that calls tools with services: calls `t` with the arguments of each line on stdin and prints the result's first line. */
import { createInterface } from "node:readline";
import { ServicePool } from "../../src/tools/service.ts";
import { Workshop } from "./helper.ts";

const shop = new Workshop(process.argv[2]!, { services: new ServicePool() });
for await (const line of createInterface({ input: process.stdin })) {
  const { text } = await shop.call("t", line);
  console.log(text.split("\n")[0]);
}
