/**
 * The programs that tests start. Each is one file, bundled as releases bundle it: that takes a
 * third of what it costs to load their sources, and tests start hundreds of them.
 *
 * P1 `warm-up.ts` bundles them from the sources as they are when the tests begin, and only then
 *    says where they are: without it nothing is started, and nothing old is tested.
 * P2 Each program of the product is started from its source too, as in a clone, by
 *    `lifecycle.test.ts` and `test/attacks/listeners.test.ts`; outside of vitest nothing else goes.
 */
import { join } from 'node:path';
import { inject } from 'vitest';

declare module 'vitest' {
  interface ProvidedContext {
    /** The folder of the bundles of this run. */
    readonly programs: string;
  }
}

/** Entry files, from the root. */
export const entries = {
  agent: 'agent/src/main.ts',
  controlplane: 'controlplane/src/main.ts',
  rackwright: 'packages/cli/src/main.ts',
  runner: 'packages/runner/src/main.ts',
  machine: 'packages/sim/src/machine/main.ts',
  replica: 'test/e2e/replica-process.ts',
} as const;

export type ProgramName = keyof typeof entries;

/** Where a program is read from. */
export type ProgramForm = 'bundle' | 'source';

export const root = join(import.meta.dirname, '../..');

/** The file to start a program by. */
export function programOf(name: ProgramName, form: ProgramForm = 'bundle'): string {
  if (form === 'source') return join(root, entries[name]);
  return join(programFolder(), `${name}.mjs`);
}

/** Where the bundles are. */
export function programFolder(): string {
  // Undefined in a tier without the warm-up, whatever the type says.
  const folder: string | undefined = inject('programs');
  if (folder === undefined) throw new Error('this tier of tests bundles no programs');
  return folder;
}

/** What a program that is given no other environment needs, to find what Node has compiled. */
export function compileCache(): Record<string, string> {
  const folder = process.env['NODE_COMPILE_CACHE'];
  return folder === undefined ? {} : { NODE_COMPILE_CACHE: folder };
}
