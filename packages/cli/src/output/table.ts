/**
 * Tables that fit the terminal; pure.
 *
 * Invariants:
 * 1. On a terminal no line is wider than it, as long as the columns that stay can be cut to fit.
 * 2. Without a terminal nothing is left out or cut: the reader is a program or a file.
 */
import { clean, fit, fitEnds, pad, widthOf } from './text.ts';

export interface TextColumn<T> {
  readonly title: string;
  readonly value: (row: T) => string;
  /** Shown by `-o wide` only. */
  readonly wideOnly?: boolean;
  /** Columns with a higher number are left out first on narrow terminals; unset stays always. */
  readonly dropOrder?: number;
  /** May be cut down to this many characters before a line gets too wide. */
  readonly widthMin?: number;
  /** Its end says more than its middle, where it is cut then. */
  readonly keepsEnds?: boolean;
}

const gap = '  ';

/** The lines of a table with its heading; `columns` is the terminal's width or undefined. */
export function formatTable<T>(
  columnsOfTable: readonly TextColumn<T>[],
  rows: readonly T[],
  columns: number | undefined,
): string[] {
  const cells = columnsOfTable.map((column) => ({
    column,
    texts: [column.title, ...rows.map((row) => clean(column.value(row)) || '-')],
  }));
  let kept: SizedColumn<T>[] = cells.map((each) => ({
    ...each,
    width: Math.max(...each.texts.map(widthOf)),
  }));
  if (columns !== undefined) {
    kept = dropToFit(kept, columns);
    cutToFit(kept, columns);
  }
  return Array.from({ length: rows.length + 1 }, (_, line) =>
    kept
      .map(({ column, texts, width }) => {
        const cut = column.keepsEnds === true ? fitEnds : fit;
        return pad(cut(texts[line] ?? '', width), width);
      })
      .join(gap)
      .trimEnd(),
  );
}

interface SizedColumn<T> {
  readonly column: TextColumn<T>;
  readonly texts: readonly string[];
  width: number;
}

function dropToFit<T>(cells: SizedColumn<T>[], columns: number): SizedColumn<T>[] {
  let kept = cells;
  // A column that can be cut counts with its smallest width: a cut column says more than none.
  while (smallestWidth(kept) > columns) {
    const last = kept.reduce<SizedColumn<T> | undefined>(
      (worst, each) => (dropOrderOf(each) > dropOrderOf(worst) ? each : worst),
      undefined,
    );
    if (last === undefined) break;
    kept = kept.filter((each) => each !== last);
  }
  return kept;
}

function dropOrderOf<T>(cell: SizedColumn<T> | undefined): number {
  return cell?.column.dropOrder ?? 0;
}

function smallestWidth<T>(cells: readonly SizedColumn<T>[]): number {
  return totalWidth(cells.map((cell) => Math.min(cell.width, cell.column.widthMin ?? cell.width)));
}

function totalWidth(widths: readonly number[]): number {
  return widths.reduce((sum, width) => sum + width, gap.length * Math.max(0, widths.length - 1));
}

/** Takes from the widest column that may be cut, one character at a time. */
function cutToFit<T>(cells: readonly SizedColumn<T>[], columns: number): void {
  let excess = totalWidth(cells.map(({ width }) => width)) - columns;
  while (excess > 0) {
    const widest = cells
      .filter(({ column, width }) => width > (column.widthMin ?? width))
      .reduce<SizedColumn<T> | undefined>(
        (best, each) => (each.width > (best?.width ?? 0) ? each : best),
        undefined,
      );
    if (widest === undefined) return;
    widest.width -= 1;
    excess -= 1;
  }
}

/** Lines of "name  value", for one resource. */
export function formatFields(
  fields: readonly (readonly [name: string, value: string])[],
): string[] {
  const width = Math.max(0, ...fields.map(([name]) => widthOf(name)));
  return fields.map(([name, value]) => `${pad(name, width)}${gap}${clean(value) || '-'}`);
}
