/**
 * The loaded pages of a long list, the wanted ones, and the effect of a change. Pure.
 *
 * Invariants:
 * 1. At most `pagesKept` pages are kept.
 * 2. A page of an earlier query (`version`) is shown until the new one has arrived, never after.
 */
import { evicted } from './window.ts';

export const pageRows = 100;
export const pagesKept = 12;

export interface KeptPage<T> {
  readonly rows: readonly T[];
  readonly version: number;
}

export type Pages<T> = ReadonlyMap<number, KeptPage<T>>;

/** The pages to request: absent ones, and those of an earlier version. */
export function missing<T>(pages: Pages<T>, wanted: readonly number[], version: number): number[] {
  return wanted.filter((number) => pages.get(number)?.version !== version);
}

/** The pages with this one, and without those that are far from it. */
export function withPage<T>(pages: Pages<T>, number: number, page: KeptPage<T>): Pages<T> {
  const next = new Map(pages);
  next.set(number, page);
  for (const far of evicted(next.keys(), number, pagesKept)) next.delete(far);
  return next;
}

/** The row at this place; undefined: it is not at hand. */
export function rowAt<T>(pages: Pages<T>, index: number): T | undefined {
  return pages.get(Math.floor(index / pageRows))?.rows[index % pageRows];
}

/** The pages with a row replaced; unchanged when no page has that row. */
export function withRow<T>(pages: Pages<T>, row: T, isSame: (other: T) => boolean): Pages<T> {
  for (const [number, page] of pages) {
    const at = page.rows.findIndex(isSame);
    if (at < 0) continue;
    return new Map(pages).set(number, { ...page, rows: page.rows.with(at, row) });
  }
  return pages;
}
