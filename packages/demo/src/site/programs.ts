/**
 * The programs of this repository as one file each, in the demo's folder: they start four times
 * as fast as their sources, and run where the clone cannot be written to.
 */
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { build } from 'esbuild';

const root = join(import.meta.dirname, '../../../..');

/** The same entry files that are started in production. */
const entries = {
  controlplane: 'controlplane/src/main.ts',
  agent: 'agent/src/main.ts',
  runner: 'packages/runner/src/main.ts',
  rackwright: 'packages/cli/src/main.ts',
  machine: 'packages/sim/src/machine/main.ts',
  guard: 'packages/demo/src/guard/main.ts',
} as const;

/** Packages that are still CommonJS ask for `require`, which modules do not have. */
const banner = [
  "import { createRequire as makeRequire } from 'node:module';",
  'const require = makeRequire(import.meta.url);',
].join('\n');

/** Bundles all programs into `FOLDER/programs`. Throws with the compiler's words. */
export async function bundlePrograms(folder: string): Promise<void> {
  const missing = Object.values(entries).filter((path) => !existsSync(join(root, path)));
  if (missing.length > 0) throw new Error(`the clone lacks ${missing.join(', ')}`);
  await build({
    absWorkingDir: root,
    entryPoints: { ...entries },
    outdir: join(folder, 'programs'),
    outExtension: { '.js': '.mjs' },
    bundle: true,
    platform: 'node',
    format: 'esm',
    target: 'node24',
    banner: { js: banner },
    legalComments: 'none',
    logLevel: 'silent',
  });
}
