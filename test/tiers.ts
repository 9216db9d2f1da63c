/**
 * The tiers of tests as vitest projects: which files each takes. Every test file belongs to
 * exactly one tier; `npm run check` runs unit and tidy.
 */

import { matchesGlob } from 'node:path';

/** Patterns from the repository's root. */
export interface Tier {
  readonly name: string;
  readonly include: readonly string[];
  readonly exclude: readonly string[];
  /** Tiers of one number run together; those that start programs after the rest, undisturbed. */
  readonly order: 1 | 2;
}

const slowOrPeer = '**/*.{peer,slow}.test.ts';
const workspaces = '{packages/*,agent,controlplane,test}';

export const tiers: readonly Tier[] = [
  {
    name: 'unit',
    include: ['{packages/*,agent,controlplane}/**/*.test.ts', 'test/*.test.ts'],
    exclude: [slowOrPeer, 'test/tidy*.test.ts'],
    order: 1,
  },
  {
    name: 'tidy',
    include: ['test/tidy*.test.ts', 'test/tidy/**/*.test.ts'],
    exclude: [],
    order: 1,
  },
  { name: 'slow', include: [`${workspaces}/**/*.slow.test.ts`], exclude: [], order: 2 },
  { name: 'peer', include: [`${workspaces}/**/*.peer.test.ts`], exclude: [], order: 2 },
  { name: 'sim', include: ['test/sim/**/*.test.ts'], exclude: [slowOrPeer], order: 1 },
  {
    name: 'system',
    include: ['test/{scenarios,lab,e2e,captures}/**/*.test.ts'],
    exclude: [slowOrPeer],
    order: 2,
  },
];

/** The names of the tiers that take a test file: one, or its tests run never or twice. */
export function tiersOf(path: string): string[] {
  const takes = ({ include, exclude }: Tier): boolean =>
    include.some((glob) => matchesGlob(path, glob)) &&
    !exclude.some((glob) => matchesGlob(path, glob));
  return tiers.filter(takes).map(({ name }) => name);
}
