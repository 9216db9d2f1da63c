/**
 * Bundles a program: one file, or one more for each part that is loaded on demand. Collects the
 * licences of its parts.
 */
import { createHash } from 'node:crypto';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { basename, join, relative } from 'node:path';
import { build, type Metafile, type Plugin } from 'esbuild';
import { definitionsFromJson } from './definitions.ts';

/** A program's first file, and the parts that it loads only on demand. */
export interface Bundle {
  readonly code: Uint8Array;
  /** Files beside it. */
  readonly chunks: readonly Chunk[];
  /** Its parts of other authors, by name. */
  readonly parts: readonly BundledPart[];
  readonly sources: BundledSources;
}

/** The sources in a program, as paths below the root. */
export interface BundledSources {
  readonly all: ReadonlySet<string>;
  /** Those that are loaded before the program's first line runs. */
  readonly atStart: ReadonlySet<string>;
}

/** A part of a program, named by its content: the same code has the same name. */
export interface Chunk {
  readonly name: string;
  readonly code: Uint8Array;
}

/** A package of npm whose code is in a bundle. */
export interface BundledPart {
  readonly name: string;
  readonly version: string;
  /** The name in its package.json. */
  readonly licence: string;
  /** The text that comes with it; empty when it has none. */
  readonly text: string;
}

/** CommonJS parts of the bundle ask for Node's modules by `require`, and for nothing else. */
const banner = 'const require = process.getBuiltinModule;';
/**
 * Of Node's modules only the used names. An import would read all of a module's names at the start,
 * and some of them load code that no program uses: `fetch`, Web Crypto, streams of files. Each
 * source has its names for itself, so that what is loaded only on demand reads them only then.
 */
const usedBuiltins: Plugin = {
  name: 'used-builtins',
  setup({ onResolve, onLoad, initialOptions: { absWorkingDir = '' } }) {
    const namespace = 'used-builtins';
    onResolve({ filter: /^node:/ }, ({ path, kind, importer }) => {
      if (kind !== 'import-statement') return undefined;
      const own = createHash('sha256').update(relative(absWorkingDir, importer)).digest('hex');
      return { path: `${path} ${own}`, namespace, sideEffects: false, pluginData: path };
    });
    onLoad({ filter: /./, namespace }, ({ pluginData }) => {
      const path = String(pluginData);
      const names = Object.keys(process.getBuiltinModule(path) ?? {});
      const lines = [
        `const whole = /* @__PURE__ */ process.getBuiltinModule('${path}');`,
        'const take = (name) => whole[name];',
        'export default whole;',
        ...names.map((name) => `const the_${name} = /* @__PURE__ */ take('${name}');`),
        ...names.map((name) => `export { the_${name} as ${name} };`),
      ];
      return { contents: lines.join('\n') };
    });
  },
};
/**
 * Parts of libraries that no program uses, and that every start would read: what asks for them, and
 * what it gets.
 */
const unusedParts: readonly UnusedPart[] = [
  // gRPC reads definitions with it for its own introspection (channelz), which no program offers:
  // a fourth of its code.
  { name: '@grpc/proto-loader', askedBy: '@grpc/grpc-js', code: absent },
  // pino's own destinations and its threads. Our log writes its lines itself.
  { name: 'sonic-boom', askedBy: 'pino', code: uncalled },
  { name: 'thread-stream', askedBy: 'pino', code: uncalled },
  { name: 'worker_threads', askedBy: 'pino', code: () => 'exports.isMainThread = true;' },
];

interface UnusedPart {
  readonly name: string;
  /** The package of npm that asks for it. */
  readonly askedBy: string;
  readonly code: (name: string) => string;
}

/** For a part that is asked for only where it is used. */
function absent(name: string): string {
  return `throw new Error('${name} is not in this program');`;
}

/** For a class that is asked for at the start. */
function uncalled(name: string): string {
  return `module.exports = class { constructor() { ${absent(name)} } };`;
}

const withoutUnusedParts: Plugin = {
  name: 'without-unused-parts',
  setup({ onResolve, onLoad }) {
    for (const { name, askedBy, code } of unusedParts) {
      const namespace = `unused ${name}`;
      onResolve({ filter: new RegExp(`^${name}$`) }, ({ path, importer }) =>
        importer.includes(`/node_modules/${askedBy}/`) ? { path, namespace } : undefined,
      );
      onLoad({ filter: /./, namespace }, () => ({ contents: code(name) }));
    }
  },
};

const licenceFile = /^(licen[cs]e|copying|notice)([.-].*)?$/i;

/**
 * Bundles `entry`, a path below `root`. `version` becomes that of the program. `parts`: a module
 * that is imported on demand stays a file of its own, for a program whose start is waited for.
 */
export async function bundle(
  root: string,
  entry: string,
  version: string,
  form: 'whole' | 'parts' = 'whole',
): Promise<Bundle> {
  const built = await build({
    absWorkingDir: root,
    entryPoints: [entry],
    bundle: true,
    splitting: form === 'parts',
    outdir: 'bundle',
    outExtension: { '.js': '.mjs' },
    chunkNames: 'part-[hash]',
    platform: 'node',
    format: 'esm',
    target: 'node24',
    banner: { js: banner },
    plugins: [usedBuiltins, withoutUnusedParts, ...(form === 'parts' ? [definitionsFromJson] : [])],
    define: { RACKWRIGHT_PACKAGE_VERSION: JSON.stringify(version) },
    metafile: true,
    write: false,
    legalComments: 'none',
    // One comment with a paragraph sign in it makes Node hold the whole program at two bytes a
    // character. Names stay, and lines stay short: a stack still says where it was.
    minifyWhitespace: true,
    lineLimit: 160,
    logLevel: 'error',
  });
  const isChunk = (path: string) => basename(path).startsWith('part-');
  const file = built.outputFiles.find(({ path }) => !isChunk(path));
  if (file === undefined) throw new Error(`esbuild made nothing of ${entry}`);
  const chunks = built.outputFiles
    .filter(({ path }) => isChunk(path))
    .map(({ path, contents }) => ({ name: basename(path), code: contents }))
    .toSorted((one, other) => (one.name < other.name ? -1 : 1));
  const folders = new Set(Object.keys(built.metafile.inputs).flatMap(packageFolder));
  const parts = [...folders].sort().map((folder) => partIn(join(root, folder)));
  return { code: file.contents, chunks, parts, sources: sourcesOf(built.metafile, entry) };
}

function sourcesOf({ outputs }: Metafile, entry: string): BundledSources {
  const sourcesIn = (names: Iterable<string>): ReadonlySet<string> =>
    new Set([...names].flatMap((name) => Object.keys(outputs[name]?.inputs ?? {})));
  const names = Object.keys(outputs);
  const atStart = new Set(names.filter((name) => outputs[name]?.entryPoint === entry));
  // A set shows what is added to it while it is walked.
  for (const name of atStart) {
    const imports = outputs[name]?.imports ?? [];
    for (const { kind, path } of imports) if (kind === 'import-statement') atStart.add(path);
  }
  return { all: sourcesIn(names), atStart: sourcesIn(atStart) };
}

/** The packages of npm in these folders, with their licences. */
export function partsIn(folders: readonly string[]): BundledPart[] {
  return folders.map(partIn);
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
