/** A folder that shows one session, agent or job. */
import type { File, Maybe } from "../ninep/file.ts";
import type { Stamp, Topic } from "../session/live.ts";
import { checkEnd, mayEnd, type Standing } from "./access.ts";
import { type Context, newest, type Site } from "./context.ts";
import { Folder } from "./folder.ts";

interface Target {
  readonly created: number;
  stamp(topic: Topic): Stamp;
  remove(): Promise<void>;
}

export abstract class SiteFolder<T extends Target> extends Folder implements Site<T> {
  constructor(
    context: Context,
    readonly target: T,
    folder: File,
  ) {
    super(context, folder);
  }

  abstract get standing(): Standing | undefined;

  get removable(): boolean {
    return mayEnd(this.standing);
  }

  protected override permissions(): number {
    return this.removable ? 0o755 : 0o555;
  }

  stamp(topics: readonly Topic[]): Stamp {
    return newest(this.target, topics);
  }

  protected override end(): Maybe<void> {
    checkEnd(this.standing);
    return this.target.remove();
  }
}
