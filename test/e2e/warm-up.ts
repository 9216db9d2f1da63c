/**
 * Bundles the programs for all tests that start them, and has each compiled once: a process that
 * ends by SIGKILL, as most do here, leaves nothing in Node's compile cache.
 */
import { spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
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
      await place(join(folder, `${name}.mjs`), join(scratch, `${name}.mjs`), code);
      // Tests start the sources too, of the programs of the product.
      await compile(name, code, name === 'replica' ? [] : [join(root, entry)]);
    }),
  );
  await building;
}

/** Replaces the file in one step: another run may be reading the old one. */
async function place(file: string, whole: string, code: Uint8Array): Promise<void> {
  if (await holds(file, code)) return;
  await writeFile(whole, code);
  await rename(whole, file);
}

/**
 * Starts the program once for Node's compile cache, unless a run has done so before: then a stamp
 * says of which code.
 */
async function compile(name: string, code: Uint8Array, sources: readonly string[]): Promise<void> {
  const cache = process.env['NODE_COMPILE_CACHE'];
  if (cache === undefined) return;
  const stamp = join(folder, `${name}.compiled`);
  const done = Buffer.from(
    `${cache} ${process.version} ${createHash('sha256').update(code).digest('hex')}\n`,
  );
  if (existsSync(cache) && (await holds(stamp, done))) return;
  // Each ends over its arguments, with everything loaded.
  for (const program of [join(folder, `${name}.mjs`), ...sources]) {
    const child = spawn(process.execPath, [program, '--nothing'], { stdio: 'ignore' });
    const [, signal] = await once(child, 'close');
    // It was killed, and has left nothing in the cache.
    if (signal !== null) return;
  }
  await writeFile(stamp, done);
}

async function holds(path: string, bytes: Uint8Array): Promise<boolean> {
  return existsSync(path) && (await readFile(path)).equals(bytes);
}
