#!/usr/bin/env ollie-run
/** The service beside the lsp_* tools: keeps language servers running between the calls. */
import { service } from "ollie:tool";
import { Bridge, type Request } from "./lib/lsp/bridge.ts";

const bridge = new Bridge(process.cwd());
await service.serve<Request>((request, signal) => bridge.answer(request, signal));
