/**
 * The programs of this repository as one file each, in the demo's folder: they start four times
 * as fast as their sources, and run where the clone cannot be written to.
 */
import { existsSync, mkdirSync, readFileSync, realpathSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { buildConsoleInto, consoleFolderName } from '@rackwright/console/build';
import { build } from 'esbuild';
import { programPath } from './folder.ts';

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

/**
 * Puts all programs into `FOLDER/programs`: links to those in the folder `bundled`, and bundles of
 * the others. Throws with the compiler's words.
 */
export async function bundlePrograms(folder: string, bundled: string | undefined): Promise<void> {
  const programs = join(folder, 'programs');
  mkdirSync(programs);
  const bundleOf = (name: string): string => join(bundled ?? '', `${name}.mjs`);
  const isBundled = (name: string): boolean => bundled !== undefined && existsSync(bundleOf(name));
  const all = Object.entries(entries);
  for (const [name] of all.filter(([each]) => isBundled(each))) {
    symlinkSync(realpathSync(bundleOf(name)), programPath(folder, name));
  }
  const entryPoints = Object.fromEntries(all.filter(([name]) => !isBundled(name)));
  const missing = Object.values(entryPoints).filter((path) => !existsSync(join(root, path)));
  if (missing.length > 0) throw new Error(`the clone lacks ${missing.join(', ')}`);
  await build({
    absWorkingDir: root,
    entryPoints,
    outdir: programs,
    outExtension: { '.js': '.mjs' },
    bundle: true,
    platform: 'node',
    format: 'esm',
    target: 'node24',
    // A program in one file looks for its other files, such as the console, beside itself.
    define: { RACKWRIGHT_PACKAGE_VERSION: JSON.stringify(versionOfClone()) },
    banner: { js: banner },
    legalComments: 'none',
    logLevel: 'silent',
  });
  await putConsole(programs, bundled);
}

function versionOfClone(): string {
  const about = readFileSync(join(root, 'package.json'), 'utf8');
  return (JSON.parse(about) as { readonly version: string }).version;
}

/** The console's files are beside the control plane, as in its package. */
async function putConsole(programs: string, bundled: string | undefined): Promise<void> {
  const there = join(bundled ?? '', consoleFolderName);
  const folder = join(programs, consoleFolderName);
  if (bundled !== undefined && existsSync(there)) symlinkSync(realpathSync(there), folder);
  else await buildConsoleInto(folder);
}
