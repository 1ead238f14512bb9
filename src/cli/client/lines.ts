/** Lines and blocks of them, wherever they are typed. */

/** Ctrl-C: what was typed is void. */
export class Interrupted extends Error {}

export interface Lines {
  /** Without its newline; undefined at the end of the input. @throws Interrupted */
  line(prompt: string): Promise<string | undefined>;
  close(): void;
}

/** A block: lines up to one that is a single dot, or a first one that begins with one slash. Undefined at the end of the input. */
export async function readBlock(source: Lines, prompt: string): Promise<string | undefined> {
  const more = prompt && "> ".padStart(prompt.length);
  for (const block: string[] = []; ; ) {
    const line = await source.line(block.length === 0 ? prompt : more);
    if (line === undefined) return block.length > 0 ? block.join("\n") : undefined;
    if (line === "." && block.length > 0) return block.join("\n");
    if (block.length === 0 && isVerb(line)) return line;
    // Nothing but blanks would be an empty prompt.
    if (line !== "." && (block.length > 0 || line.trim() !== "")) block.push(line);
  }
}

/** Whether a line is a command to the agent instead of a text for the model. */
export function isVerb(line: string): boolean {
  return /^\/(?!\/)/.test(line);
}
