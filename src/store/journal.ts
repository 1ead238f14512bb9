/** The journal of one agent: whole lines, appended one at a time. What a record means is `agent-state.ts`' business. */
import { Fault, toFault } from "../fault.ts";
import { type Place, readLine } from "./journal-lines.ts";
import type { LogFile } from "./log-file.ts";
import { type JournalRecord, type NewRecord, recordSchema } from "./records.ts";

export interface Written {
  /** As a reader will find it. */
  record: JournalRecord;
  place: Place;
}

export class Journal {
  /** Bytes up to the end of the last whole line. */
  #good: number;
  /** Lines that a full disk refused and that must come before any other. */
  #owed = "";

  constructor(readonly file: LogFile) {
    this.#good = file.length;
  }

  /** Bytes. */
  get length(): number {
    return this.#good;
  }

  /**
   * Appends one line, stamped with the time unless `record` has one. Throws a Fault (kind "full" on a full disk, "invalid" where it
   * could not be read back), and then the journal is as before: a torn piece has been cut off.
   */
  append(record: NewRecord & { at?: number }): Written {
    const line = prepare(record);
    const owed = this.#owed;
    this.#write(`${owed}${line.text}\n`);
    this.#owed = "";
    return this.#written(line, this.#good - line.bytes - 1);
  }

  /** Like `append`, but where the disk refuses (`fault` says why), the line is kept and written before the next one. */
  appendOrOwe(record: NewRecord): Written & { fault?: Fault } {
    const line = prepare(record);
    const at = this.#good + Buffer.byteLength(this.#owed);
    const fault = this.owe(`${line.text}\n`);
    return { ...this.#written(line, at), fault };
  }

  /** Text that must come before the next line; written now if the disk takes it. Returns why it did not. */
  owe(text: string): Fault | undefined {
    this.#owed += text;
    try {
      this.#write(this.#owed);
      this.#owed = "";
    } catch (error) {
      // The next append tries again, and tells its caller.
      return toFault(error);
    }
  }

  /** Calls back with every record from byte `from` to byte `to`. */
  async records(from: number, to: number, visit: (record: JournalRecord) => void): Promise<void> {
    await this.file.lines(from, Math.min(to, this.#good), (line) => {
      for (const { record } of readLine(line).pieces) if (record) visit(record);
    });
  }

  /** The records of one line. Reads the disk synchronously. */
  at(place: Place): JournalRecord[] {
    return readLine(this.file.read(place.at, place.bytes)).pieces.flatMap(({ record }) => record ?? []);
  }

  #write(text: string): void {
    // A piece that could not be cut off when its write failed.
    if (this.file.length !== this.#good) this.file.truncate(this.#good);
    try {
      this.file.write(Buffer.from(text));
    } catch (error) {
      try {
        this.file.truncate(this.#good);
      } catch {
        // Tried again before the next write.
      }
      throw error;
    }
    this.#good = this.file.length;
  }

  #written(line: Line, at: number): Written {
    return { record: line.record, place: { at, bytes: line.bytes } };
  }
}

interface Line {
  text: string;
  bytes: number;
  record: JournalRecord;
}

/** The line as it will be read: JSON drops and changes some values (NaN, undefined), and what cannot be read back must not be written. */
function prepare(record: NewRecord & { at?: number }): Line {
  const { t, at = Date.now(), ...rest } = record;
  let text: string;
  try {
    text = JSON.stringify({ t, at, ...rest });
  } catch (error) {
    throw toFault(error, `the journal record "${t}" is not JSON`);
  }
  const read = recordSchema.safeParse(JSON.parse(text));
  if (!read.success) {
    const [issue] = read.error.issues;
    throw new Fault(
      "invalid",
      `the journal record "${t}" is wrong at ${issue?.path.join(".")}: ${issue?.message}`,
    );
  }
  return { text, bytes: Buffer.byteLength(text), record: read.data };
}
