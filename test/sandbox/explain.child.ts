/** Explains the output given as the first argument, as whoever runs this, to whom the working folder is not given. Prints the sentences. */
import { explain } from "../../src/sandbox/explain.ts";

const filesystem = { list: [], ro: [], rox: ["/usr"], rw: [], rwx: [] };
const network = { unrestricted: true, bind: [], connect: [], unix: [] };
const policy = { filesystem, network, env: [], bestEffort: false, frozen: [], hidden: [] };
const places = { all: [], open: [] };
const scene = { policy, cwd: "/", home: "/nowhere", rulesFile: "/rules.yaml", places, replaced: () => [] };
console.log(explain(process.argv[2]!, scene).join("\n"));
