/**
 * Which rows of a long list are on the screen, and which pages of it are wanted. Pure.
 *
 * Invariants:
 * 1. The rows shown and the pages kept are bounded, however long the list is.
 * 2. A list that is taller than what browsers draw is scrolled in proportion: its first and its
 *    last row are reached all the same.
 */

/** Browsers cut elements that are taller; the least of them at 17 million pixels. */
export const spacerPxMax = 15_000_000;
/** Rows beyond either edge, so that a scroll shows something at once. */
export const overscanRows = 8;

export interface Viewport {
  readonly scrollPx: number;
  readonly heightPx: number;
  readonly rowPx: number;
  readonly rows: number;
}

export interface ListWindow {
  /** The first row that is drawn. */
  readonly first: number;
  /** The row behind the last one. */
  readonly end: number;
  /** The position of the first one, from the top of the spacer. */
  readonly topPx: number;
  /** The height of the whole list, as far as it can be drawn. */
  readonly spacerPx: number;
}

/** The rows to draw of a list at this scroll position. */
export function windowOf({ scrollPx, heightPx, rowPx, rows }: Viewport): ListWindow {
  const wholePx = rows * rowPx;
  const spacerPx = Math.min(wholePx, spacerPxMax);
  const reachPx = Math.max(1, spacerPx - heightPx);
  const atPx = Math.min(Math.max(0, scrollPx), reachPx);
  // Without scaling `offsetPx` is `atPx`.
  const offsetPx = spacerPx === wholePx ? atPx : (atPx / reachPx) * (wholePx - heightPx);
  const firstSeen = Math.floor(offsetPx / rowPx);
  const seen = Math.ceil(heightPx / rowPx) + 1;
  const first = Math.max(0, Math.min(firstSeen, rows - 1) - overscanRows);
  const end = Math.min(rows, firstSeen + seen + overscanRows);
  return { first, end: Math.max(first, end), topPx: first * rowPx - offsetPx + atPx, spacerPx };
}

/** The scroll position at which the row is visible; unchanged where it is already. */
export function scrollTo(row: number, viewport: Viewport): number {
  const { scrollPx, heightPx, rowPx, rows } = viewport;
  const { spacerPx } = windowOf(viewport);
  const wholePx = rows * rowPx;
  const scale = spacerPx === wholePx ? 1 : (spacerPx - heightPx) / (wholePx - heightPx);
  const offsetPx = scrollPx / scale;
  const topPx = row * rowPx;
  const bottomPx = Math.max(0, topPx + rowPx - heightPx);
  if (offsetPx > topPx) return topPx * scale;
  return offsetPx < bottomPx ? bottomPx * scale : scrollPx;
}

/** Numbers of the pages that hold the rows from `first` to before `end`. */
export function pagesOf({ first, end }: Pick<ListWindow, 'first' | 'end'>, pageRows: number) {
  if (end <= first) return [];
  const from = Math.floor(first / pageRows);
  const to = Math.floor((end - 1) / pageRows);
  return Array.from({ length: to - from + 1 }, (_, index) => from + index);
}

/** Those of the kept pages that go, so that `most` stay: the farthest from `near` (1). */
export function evicted(kept: Iterable<number>, near: number, most: number): number[] {
  const nearest = [...kept].sort((a, b) => Math.abs(a - near) - Math.abs(b - near));
  return nearest.slice(most);
}
