/**
 * The build of the console: from its sources to the files that the control plane serves.
 *
 * Invariants:
 * 1. The same sources give the same bytes: names carry hashes of contents, and nothing says when or
 *    where it was built.
 * 2. The files load nothing from elsewhere, and the page itself holds no script or style.
 */
import { mkdir, rename, rm, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { build } from 'vite';

const root = join(import.meta.dirname, '../..');

/** The folder of these files for a control plane that runs from this tree. */
export const consoleFolder = join(root, 'dist');

/** The folder of these files for a bundled control plane: beside its program. */
export const consoleFolderName = 'console';

/** The console as it is served. */
export interface BuiltConsole {
  /** By their paths, for example "index.html" and "assets/index-B1x9aQzK.js". */
  readonly files: ReadonlyMap<string, Uint8Array>;
  /** Folders of the packages of npm whose code is in them. */
  readonly packageFolders: readonly string[];
}

/** Builds it, in memory. Throws with the compiler's words. */
export async function buildConsole(): Promise<BuiltConsole> {
  const built = await build({
    root,
    configFile: false,
    envFile: false,
    logLevel: 'silent',
    clearScreen: false,
    base: '/',
    mode: 'production',
    oxc: { jsx: { runtime: 'automatic', importSource: 'preact' } },
    build: {
      write: false,
      target: 'es2022',
      modulePreload: { polyfill: false },
      // A picture in an address would need a place of its own in the policy of contents.
      assetsInlineLimit: 0,
      cssCodeSplit: false,
      reportCompressedSize: false,
    },
  });
  if (!('output' in built)) throw new Error('the build of the console has made no single output');
  const files = new Map<string, Uint8Array>();
  const packageFolders = new Set<string>();
  for (const made of built.output) {
    files.set(made.fileName, bytesOf(made.type === 'chunk' ? made.code : made.source));
    if (made.type !== 'chunk') continue;
    for (const id of made.moduleIds) {
      const found = /^.*\/node_modules\/(?:@[^/]+\/)?[^/]+/.exec(id);
      if (found !== null) packageFolders.add(found[0]);
    }
  }
  return { files, packageFolders: [...packageFolders].sort() };
}

/**
 * Builds it into `folder`, in place of the present content: a reader finds either build, complete.
 */
export async function buildConsoleInto(folder: string): Promise<void> {
  const { files } = await buildConsole();
  const fresh = `${folder}.${process.pid}.new`;
  const old = `${folder}.${process.pid}.old`;
  for (const [path, bytes] of files) {
    const file = join(fresh, path);
    await mkdir(dirname(file), { recursive: true });
    await writeFile(file, bytes);
  }
  await rename(folder, old).catch((error: unknown) => {
    // The first build has nothing to put aside.
    const isMissing = error instanceof Error && 'code' in error && error.code === 'ENOENT';
    if (!isMissing) throw error;
  });
  await rename(fresh, folder);
  await rm(old, { recursive: true, force: true });
}

function bytesOf(content: string | Uint8Array): Uint8Array {
  return typeof content === 'string' ? Buffer.from(content) : content;
}
