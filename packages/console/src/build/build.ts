/**
 * The build of the console: from its sources to the files that the control plane serves.
 *
 * Invariants:
 * 1. The same sources give the same bytes: names carry hashes of contents, and nothing says when or
 *    where it was built.
 * 2. The files load nothing from elsewhere, and no script or style stands in the page itself.
 */
import { join } from 'node:path';
import { build } from 'vite';

const root = join(import.meta.dirname, '../..');

/** Where the files are put unless told otherwise. */
export const consoleFolder = join(root, 'dist');

/** Builds the console into `folder`, which is emptied before. Throws with the compiler's words. */
export async function buildConsole(folder: string = consoleFolder): Promise<void> {
  await build({
    root,
    configFile: false,
    envFile: false,
    logLevel: 'silent',
    clearScreen: false,
    base: '/',
    mode: 'production',
    oxc: { jsx: { runtime: 'automatic', importSource: 'preact' } },
    build: {
      outDir: folder,
      emptyOutDir: true,
      target: 'es2022',
      modulePreload: { polyfill: false },
      // A picture in an address would need a place of its own in the policy of contents.
      assetsInlineLimit: 0,
      cssCodeSplit: false,
      reportCompressedSize: false,
    },
  });
}
