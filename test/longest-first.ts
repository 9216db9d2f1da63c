/** The order in which vitest runs the files of `npm test`. */
import { relative } from 'node:path';
import { BaseSequencer, type TestSpecification } from 'vitest/node';
import { longest, secondsOfRun, tiers } from './tiers.ts';

/**
 * The longest files come first, then tier after tier: between files of one tier a worker keeps its
 * modules. Within these it is Vitest's own order.
 *
 * A run with a limit on its time begins with the last tier: what it leaves out is tests of several
 * programs, not those that tell most about a change.
 */
export class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const sorted = await super.sort(files);
    const root = this.ctx.config.root;
    const rank = ({ moduleId }: TestSpecification): number => {
      const at = longest.indexOf(relative(root, moduleId));
      return at === -1 ? longest.length : at;
    };
    const tier = ({ project }: TestSpecification): number =>
      tiers.findIndex(({ name }) => name === project.name);
    const isLimited = secondsOfRun(process.env) !== undefined;
    return sorted.sort(
      (a, b) => (isLimited ? tier(b) - tier(a) : 0) || rank(a) - rank(b) || tier(a) - tier(b),
    );
  }
}
