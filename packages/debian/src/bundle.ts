/** Makes one file of a program, and collects the licences of what is in it. */
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { build } from 'esbuild';

/** A program in one file. */
export interface Bundle {
  readonly code: Uint8Array;
  /** What others wrote in it, by name. */
  readonly parts: readonly BundledPart[];
}

/** A package of npm whose code is in a bundle. */
export interface BundledPart {
  readonly name: string;
  readonly version: string;
  /** As its package.json names it. */
  readonly licence: string;
  /** The text that it comes with; empty when it has none. */
  readonly text: string;
}

/** CommonJS parts of the bundle ask for Node's modules by `require`. */
const banner =
  "import { createRequire as rackwrightRequire } from 'node:module';" +
  'const require = rackwrightRequire(import.meta.url);';
const licenceFile = /^(licen[cs]e|copying|notice)([.-].*)?$/i;

/** Bundles `entry`, a path below `root`. `version` becomes that of the program. */
export async function bundle(root: string, entry: string, version: string): Promise<Bundle> {
  const built = await build({
    absWorkingDir: root,
    entryPoints: [entry],
    bundle: true,
    platform: 'node',
    format: 'esm',
    target: 'node24',
    banner: { js: banner },
    define: { RACKWRIGHT_PACKAGE_VERSION: JSON.stringify(version) },
    metafile: true,
    write: false,
    legalComments: 'none',
    logLevel: 'error',
  });
  const [file] = built.outputFiles;
  if (file === undefined) throw new Error(`esbuild made nothing of ${entry}`);
  const folders = new Set(Object.keys(built.metafile.inputs).flatMap(packageFolder));
  const parts = [...folders].sort().map((folder) => partIn(join(root, folder)));
  return { code: file.contents, parts };
}

function packageFolder(input: string): string[] {
  const found = /^(?:.*\/)?node_modules\/(?:@[^/]+\/)?[^/]+/.exec(input);
  return found === null ? [] : [found[0]];
}

function partIn(folder: string): BundledPart {
  const about = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8')) as {
    readonly name: string;
    readonly version: string;
    readonly license?: string;
  };
  return {
    name: about.name,
    version: about.version,
    licence: about.license ?? 'see the text',
    text: licenceText(folder),
  };
}

/** The licence files of a folder, one after the other. */
export function licenceText(folder: string): string {
  if (!existsSync(folder)) return '';
  return readdirSync(folder)
    .filter((name) => licenceFile.test(name))
    .sort()
    .map((name) => readFileSync(join(folder, name), 'utf8').trimEnd())
    .join('\n\n');
}
