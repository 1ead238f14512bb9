/** What a figure is, and how they are printed. */

export interface Figure {
  name: string;
  value: number;
  unit: string;
  /** What it should be: at most, or at least. */
  most?: number;
  least?: number;
}

export function median(values: number[]): number {
  return values.sort((a, b) => a - b)[values.length >> 1]!;
}

export function reached({ value, most, least }: Figure): boolean {
  return (most === undefined || value <= most) && (least === undefined || value >= least);
}

export function row(figure: Figure): string[] {
  const { name, value, unit, most, least } = figure;
  const goal = most !== undefined ? `≤ ${most}` : least !== undefined ? `≥ ${least}` : "";
  const digits = value < 10 ? 2 : value < 100 ? 1 : 0;
  return [name, `${value.toFixed(digits)} ${unit}`, goal, goal === "" ? "" : reached(figure) ? "yes" : "NO"];
}

export function table(rows: string[][]): string {
  const widths = rows[0]!.map((_, i) => Math.max(...rows.map((cells) => cells[i]!.length)));
  return rows
    .map((cells) =>
      cells
        .map((cell, i) => cell.padEnd(widths[i]!))
        .join("  ")
        .trimEnd(),
    )
    .join("\n");
}
