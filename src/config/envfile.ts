/**
 * The env file: `KEY=value  # comment`, one a line, in the ways of sh(1) that people expect of such a file.
 *
 * - `'…'` is taken as it stands; in `"…"` a backslash quotes `" \ $` and the backquote. Quoted and unquoted parts may follow each other.
 * - An unquoted value ends at the end of the line or at a `#` after a blank; blanks around it do not count.
 * - `~` at the start of a value or after a `:` in it, unquoted and alone or before a `/`, is the home folder.
 * - `${NAME}` and `${NAME:-default}` are replaced outside single quotes. A `$` without a brace is just a `$`, so that keys need no care.
 * - `export ` in front is allowed. A later line wins over an earlier one.
 */
import { Fault } from "../fault.ts";

const assignment = /^(?:export[ \t]+)?([A-Za-z_][A-Za-z0-9_]*)[ \t]*=[ \t]*/;

/**
 * Parses the text of an env file.
 *
 * `${NAME}` looks into `environment` first, then at the lines above, and is empty where neither has it.
 * @param name how errors call the file
 * @throws Fault "invalid" that names file and line
 */
export function parseEnvFile(
  text: string,
  name: string,
  environment: Record<string, string | undefined>,
): Map<string, string> {
  const values = new Map<string, string>();
  const lookup = (key: string) => environment[key] ?? values.get(key) ?? "";
  const lines = text.replace(/^\uFEFF/, "").split(/\r?\n/);
  for (const [index, raw] of lines.entries()) {
    const line = raw.trim();
    if (line === "" || line.startsWith("#")) continue;
    const fail = (what: string) => new Fault("invalid", `${name}:${index + 1}: ${what}`);
    const match = assignment.exec(line);
    if (!match) throw fail(`expected KEY=value, found ${quote(line)}`);
    const value = new ValueReader(line, match[0].length, lookup, fail);
    values.set(match[1]!, value.read());
  }
  return values;
}

function quote(line: string): string {
  // A key pasted without its name must not end up in a log whole.
  return `“${line.length > 12 ? `${line.slice(0, 12)}…` : line}”`;
}

/** Reads one value from `line`, starting at `at`. */
class ValueReader {
  private out = "";
  /** Up to here `out` must not be trimmed: it came from quotes or from a variable. */
  private firm = 0;

  constructor(
    private readonly line: string,
    private at: number,
    private readonly lookup: (key: string) => string,
    private readonly fail: (what: string) => Fault,
  ) {}

  read(): string {
    const start = this.at;
    while (this.at < this.line.length) {
      const char = this.line[this.at]!;
      if (char === "#" && (this.at === start || /[ \t]/.test(this.line[this.at - 1]!))) break;
      if (char === "'") this.single();
      else if (char === '"') this.double();
      else if (char === "~" && this.isHome(start)) {
        this.out += this.lookup("HOME");
        this.at++;
      } else if (char === "$" && this.line[this.at + 1] === "{") this.out += this.variable();
      else {
        this.out += char;
        this.at++;
        continue;
      }
      this.firm = this.out.length;
    }
    return this.out.slice(0, this.firm) + this.out.slice(this.firm).trimEnd();
  }

  private isHome(start: number): boolean {
    const before = this.line[this.at - 1];
    const after = this.line[this.at + 1];
    return (this.at === start || before === ":") && (after === undefined || /[/: \t]/.test(after));
  }

  private single(): void {
    const end = this.line.indexOf("'", this.at + 1);
    if (end < 0) throw this.fail("a ' is not closed on its line");
    this.out += this.line.slice(this.at + 1, end);
    this.at = end + 1;
  }

  private double(): void {
    this.at++;
    for (;;) {
      const char = this.line[this.at];
      if (char === undefined) throw this.fail('a " is not closed on its line');
      if (char === '"') break;
      if (char === "\\" && /["\\$`]/.test(this.line[this.at + 1] ?? "")) {
        this.out += this.line[this.at + 1];
        this.at += 2;
      } else if (char === "$" && this.line[this.at + 1] === "{") this.out += this.variable();
      else {
        this.out += char;
        this.at++;
      }
    }
    this.at++;
  }

  /** `${NAME}` or `${NAME:-default}`; the default may hold further ones, and a `~` at its start. */
  private variable(): string {
    const match = /^\$\{([A-Za-z_][A-Za-z0-9_]*)(:-|\})/.exec(this.line.slice(this.at));
    if (!match) throw this.fail(`after "\${" expected NAME} or NAME:-default}`);
    this.at += match[0].length;
    const value = this.lookup(match[1]!);
    if (match[2] === "}") return value;
    const fallback = this.fallback();
    return value === "" ? fallback : value;
  }

  private fallback(): string {
    let text = "";
    const start = this.at;
    for (;;) {
      const char = this.line[this.at];
      if (char === undefined) throw this.fail('a "${" is not closed on its line');
      if (char === "}") break;
      if (char === "$" && this.line[this.at + 1] === "{") text += this.variable();
      else {
        const home = char === "~" && this.at === start && /[/}]/.test(this.line[this.at + 1] ?? "");
        text += home ? this.lookup("HOME") : char;
        this.at++;
      }
    }
    this.at++;
    return text;
  }
}
