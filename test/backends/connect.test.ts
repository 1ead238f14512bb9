/** The limit for connecting: a host that takes no connection is given up, one that took it and thinks is not. */
import { dlopen, FFIType, ptr } from "bun:ffi";
import { expect, test } from "bun:test";
import { connect } from "node:net";
import { OpenAIBackend } from "../../src/backends/openai.ts";
import { ask, play } from "./harness.ts";
import { startTorture } from "./torture.ts";

const hasty = { connect: 600, first: 0, idle: 0 };

/**
 * A socket that listens with the shortest queue and never accepts: once the queue is full, the kernel drops what knocks, as the network
 * does for a host that is gone. `node:net` cannot do this, for it always accepts.
 */
function listenDeaf(): { port: number; close(): void } {
  const { i32, pointer } = FFIType;
  const libc = dlopen("libc.so.6", {
    socket: { args: [i32, i32, i32], returns: i32 },
    bind: { args: [i32, pointer, i32], returns: i32 },
    listen: { args: [i32, i32], returns: i32 },
    getsockname: { args: [i32, pointer, pointer], returns: i32 },
    close: { args: [i32], returns: i32 },
  });
  const { socket, bind, listen, getsockname, close } = libc.symbols;
  const streams = 1;
  const inet = 2;
  const fd = socket(inet, streams, 0);
  // struct sockaddr_in: family, port 0, 127.0.0.1.
  const address = new Uint8Array([inet, 0, 0, 0, 127, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0]);
  if (fd < 0 || bind(fd, ptr(address), 16) < 0 || listen(fd, 0) < 0) throw new Error("no socket");
  getsockname(fd, ptr(address), ptr(new Int32Array([16])));
  return {
    port: new DataView(address.buffer).getUint16(2),
    close: () => {
      close(fd);
      libc.close();
    },
  };
}

test("a host that takes no connection is given up in time", async () => {
  const deaf = listenDeaf();
  const { port } = deaf;
  const fillers = Array.from({ length: 4 }, () => connect({ host: "127.0.0.1", port }).on("error", () => {}));
  try {
    await Bun.sleep(100);
    const backend = new OpenAIBackend({ name: "openai", url: `http://127.0.0.1:${port}`, limits: hasty });
    const { error, detail } = await play(backend, ask("hi"));
    expect(error?.message).toBe(`openai: cannot reach http://127.0.0.1:${port}: no connection within 0.6 s`);
    expect(detail?.retryable).toBe(true);
  } finally {
    for (const socket of fillers) socket.destroy();
    deaf.close();
  }
});

test("a host that took the connection and is slow to answer is waited for", async () => {
  const torture = await startTorture();
  try {
    const backend = new OpenAIBackend({ name: "openai", url: torture.url("late"), limits: hasty });
    expect(await play(backend, ask("hi"))).toMatchObject({ text: "one", finish: "stop" });
  } finally {
    await torture.close();
  }
});
