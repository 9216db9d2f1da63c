/** The order in which vitest runs the files of `npm test`. */
import { relative } from 'node:path';
import { BaseSequencer, type TestSpecification } from 'vitest/node';
import { longest, secondsOfRun, tiers } from './tiers.ts';

/**
 * Tier after tier, and in each the longest files first; within these it is Vitest's own order.
 * Vitest ends a worker before a file of another tier, and the next one loads everything anew: one
 * file amid those of another tier costs two such starts.
 *
 * A run with a limit on its time begins with the last tier: what it leaves out is tests of several
 * programs, not those that tell most about a change.
 */
export class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const sorted = await super.sort(files);
    const root = this.ctx.config.root;
    const names = tiers.map(({ name }) => name);
    const order = secondsOfRun(process.env) === undefined ? names : names.toReversed();
    const place = ({ moduleId, project }: TestSpecification): TieredFile => {
      return { path: relative(root, moduleId), tier: project.name };
    };
    return sorted.sort((a, b) => compareFiles(place(a), place(b), order));
  }
}

/** A test file: its path from the root, and the name of its tier. */
export interface TieredFile {
  readonly path: string;
  readonly tier: string;
}

/** Negative when `a` begins before `b`, and 0 when either may. `order`: the names of the tiers. */
export function compareFiles(a: TieredFile, b: TieredFile, order: readonly string[]): number {
  const rank = ({ path }: TieredFile): number => {
    const at = longest.indexOf(path);
    return at === -1 ? longest.length : at;
  };
  return order.indexOf(a.tier) - order.indexOf(b.tier) || rank(a) - rank(b);
}
