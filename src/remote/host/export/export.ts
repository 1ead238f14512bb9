/** `session.export`: made once, then read in pieces from any offset on, on any connection. */
import { createHash, randomBytes } from "node:crypto";
import {
  closeSync,
  fstatSync,
  fsyncSync,
  openSync,
  readdirSync,
  readFileSync,
  readSync,
  renameSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { z } from "zod";
import { toFault } from "../../../fault.ts";
import { coded } from "../../protocol/errors.ts";
import { exportFormat, type SessionExported, type sessionExport } from "../../protocol/exports.ts";
import { withFd } from "../files/beneath.ts";
import { hashOf } from "../files/read.ts";
import type { Workspace } from "../files/workspace.ts";
import { ownFolder } from "../own-folder.ts";
import { archive } from "./archive.ts";
import { bundle } from "./bundle.ts";

const described = z.object({ format: exportFormat, left: z.int(), head: z.string().optional() });

export class Exports {
  #making: Promise<string> | undefined;

  /**
   * @param folder `ROOT/sessions/ID`
   * @param cwd the working folder
   */
  constructor(
    private readonly folder: string,
    private readonly cwd: string,
    private readonly workspace: Workspace,
  ) {}

  /** @throws CodedFault `session.no_export`, `session.no_git`, `session.bundle`, `session.changing`, `session.no_space` */
  async piece(params: z.infer<typeof sessionExport>): Promise<SessionExported> {
    const name = params.export ?? (await this.#make(params.format));
    const { format, left, head } = this.#about(name);
    const fd = openSync(this.#path(name), "r");
    return withFd(fd, () => {
      const { size } = fstatSync(fd);
      if (params.off > size)
        throw coded("session.no_export", `the export has ${size} bytes, and none from ${params.off} on`);
      const bytes = Buffer.alloc(Math.min(params.bytes, size - params.off));
      const count = readSync(fd, bytes, 0, bytes.length, params.off);
      const data = bytes.subarray(0, count);
      const sha256 = createHash("sha256").update(data).digest("hex");
      const eof = params.off + count === size;
      return {
        export: name,
        format,
        size,
        off: params.off,
        data: data.toString("base64"),
        sha256,
        eof,
        left,
        head,
      };
    });
  }

  /** One at a time; the one before it goes, since it is of files that may have changed. */
  async #make(format: z.infer<typeof exportFormat>): Promise<string> {
    await this.#making?.catch(() => {});
    this.#making = this.#fresh(format);
    return this.#making;
  }

  async #fresh(format: z.infer<typeof exportFormat>): Promise<string> {
    const folder = ownFolder(this.#folder);
    const temporary = join(folder, `.new-${randomBytes(8).toString("hex")}`);
    try {
      const about =
        format === "tar"
          ? { format, left: await archive(this.workspace, temporary) }
          : { format, left: 0, head: await this.#bundle(temporary) };
      const name = await this.#hash(temporary);
      writeFileSync(`${this.#path(name)}.json`, JSON.stringify(about), { mode: 0o600 });
      renameSync(temporary, this.#path(name));
      for (const other of readdirSync(folder))
        if (!other.startsWith(name)) rmSync(join(folder, other), { force: true });
      return name;
    } catch (error) {
      if (toFault(error).kind === "full")
        throw coded("session.no_space", "there is no space left for the export on the host");
      throw error;
    } finally {
      rmSync(temporary, { force: true });
    }
  }

  /** What is committed can be read by whoever may run git. */
  #bundle(file: string): Promise<string | undefined> {
    const { path } = this.workspace.policy.checkProgram("git", this.cwd);
    return bundle(path, this.cwd, file);
  }

  async #hash(file: string): Promise<string> {
    const fd = openSync(file, "r");
    try {
      const hash = await hashOf(fd);
      fsyncSync(fd);
      return hash;
    } finally {
      closeSync(fd);
    }
  }

  #about(name: string): z.infer<typeof described> {
    try {
      return described.parse(JSON.parse(readFileSync(`${this.#path(name)}.json`, "utf8")));
    } catch (error) {
      throw coded(
        "session.no_export",
        `there is no export ${name} of this session any more`,
        { hint: "begin a new one" },
        { cause: error },
      );
    }
  }

  get #folder(): string {
    return join(this.folder, "export");
  }

  #path(name: string): string {
    return join(this.#folder, name);
  }
}
