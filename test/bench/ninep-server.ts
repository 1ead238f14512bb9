/** The servers of `ninep.ts`, in a process of their own: `ECHO-PATH 9P-PATH LENGTH-OF-THE-LARGE-FILE`. */
import { listenUnix } from "../../src/ninep/listen.ts";
import { ramfs } from "../../src/ninep/ramfs.ts";
import { Server } from "../../src/ninep/server.ts";

const [echoPath, ninePath, length] = process.argv.slice(2);

Bun.listen<{ held: Buffer }>({
  unix: echoPath!,
  socket: {
    open(socket) {
      socket.data = { held: Buffer.alloc(0) };
    },
    data(socket, chunk) {
      let { held } = socket.data;
      held = held.length > 0 ? Buffer.concat([held, chunk]) : chunk;
      let at = 0;
      while (held.length - at >= 4) {
        const size = held.readUInt32LE(at);
        if (size > held.length - at) break;
        socket.write(held.subarray(at, at + size));
        at += size;
      }
      socket.data.held = held.subarray(at);
    },
  },
});

const root = ramfs();
root.add("small", 0o666, Buffer.alloc(100, "s"));
root.add("sink", 0o666);
root.add("large", 0o666, Buffer.alloc(Number(length), "l"));
await listenUnix(ninePath!, new Server(root));
console.log("ready");
