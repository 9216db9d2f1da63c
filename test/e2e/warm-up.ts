/**
 * Compiles the programs once for all tests that start them: a process that ends by SIGKILL, as
 * most do here, leaves nothing in Node's compile cache. Without a cache there is nothing to do.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';

const programs = [
  'agent/src/main.ts',
  'controlplane/src/main.ts',
  'packages/runner/src/main.ts',
  'packages/sim/src/machine/main.ts',
];
const root = join(import.meta.dirname, '../..');

/** Vitest calls it before the first test. */
export async function setup(): Promise<void> {
  if (process.env['NODE_COMPILE_CACHE'] === undefined) return;
  await Promise.all(
    programs.map(async (program) => {
      // Each ends over its arguments, with everything loaded.
      const words = [join(root, program), '--nothing'];
      await once(spawn(process.execPath, words, { stdio: 'ignore' }), 'close');
    }),
  );
}
