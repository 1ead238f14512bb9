/** The cells of one HTML table, and how they look in Markdown. */
export class Table {
  readonly #rows: string[][] = [];
  #row: string[] | undefined;

  openRow(): void {
    this.closeRow();
    this.#row = [];
  }

  addCell(text: string): void {
    this.#row ??= [];
    this.#row.push(text.replace(/\s+/g, " ").trim());
  }

  closeRow(): void {
    if (this.#row?.some((cell) => cell !== "")) this.#rows.push(this.#row);
    this.#row = undefined;
  }

  /** A table of one column only arranges what is in it. */
  lines(): string[] {
    this.closeRow();
    const width = Math.max(0, ...this.#rows.map((row) => row.length));
    if (width <= 1) return this.#rows.flat();
    const line = (cells: string[]) => `| ${cells.join(" | ")} |`;
    const [head, ...body] = this.#rows.map((row) =>
      line(Array.from({ length: width }, (_, i) => (row[i] ?? "").replaceAll("|", "\\|"))),
    );
    return [head!, line(Array<string>(width).fill("---")), ...body];
  }
}
