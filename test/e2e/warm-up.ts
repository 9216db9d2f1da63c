/**
 * Bundles the programs for all tests that start them, and has each compiled once: a process that
 * ends by SIGKILL, as most do here, leaves nothing in Node's compile cache.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { mkdir, readFile, rename, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { buildConsoleInto, consoleFolderName } from '@rackwright/console/build';
import { bundle } from '@rackwright/debian';
import type { TestProject } from 'vitest/node';
import { folderInClone } from '../run-folder.ts';
import { entries, root } from './programs.ts';

/**
 * One place for all runs, so that they leave no more than one. What stands there is compared with
 * what the sources give now, and never taken for it.
 */
const folder = join(root, '.cache/programs');

/** Vitest calls it before the first test. */
export async function setup(project: TestProject): Promise<void> {
  await bundlePrograms();
  project.onTestsRerun(bundlePrograms);
  project.provide('programs', folder);
}

async function bundlePrograms(): Promise<void> {
  await mkdir(folder, { recursive: true });
  const scratch = folderInClone('programs-');
  const about = await readFile(join(root, 'package.json'), 'utf8');
  const { version } = JSON.parse(about) as { version: string };
  const building = buildConsoleInto(join(folder, consoleFolderName));
  await Promise.all(
    Object.entries(entries).map(async ([name, entry]) => {
      const { code } = await bundle(root, entry, version);
      const file = join(folder, `${name}.mjs`);
      // The same code has been compiled by the run that put it there.
      if (existsSync(file) && (await readFile(file)).equals(code)) return;
      // Another run may just be reading the one of before.
      const whole = join(scratch, `${name}.mjs`);
      await writeFile(whole, code);
      await rename(whole, file);
      if (process.env['NODE_COMPILE_CACHE'] === undefined) return;
      // Each ends over its arguments, with everything loaded. Tests start the sources too, of the
      // programs of the product.
      const fromSource = name === 'replica' ? [] : [join(root, entry)];
      for (const program of [file, ...fromSource]) {
        await once(spawn(process.execPath, [program, '--nothing'], { stdio: 'ignore' }), 'close');
      }
    }),
  );
  await building;
}
