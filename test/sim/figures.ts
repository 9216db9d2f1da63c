/** What a world, or many of them, went through: figures for people. */

export type Figures = Map<string, number>;

/** Adds the figures of one world to those of all. */
export function addFigures(sum: Figures, more: ReadonlyMap<string, number>): void {
  for (const [what, count] of more) sum.set(what, (sum.get(what) ?? 0) + count);
}

/** The most frequent first. */
export function figureLines(figures: ReadonlyMap<string, number>): string[] {
  return [...figures]
    .sort(([a, aCount], [b, bCount]) => bCount - aCount || (a < b ? -1 : 1))
    .map(([what, count]) => `${String(count).padStart(10)} ${what}`);
}
