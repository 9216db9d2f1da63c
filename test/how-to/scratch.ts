/** A copy of the sources that may be changed, and what the compiler says of it then. */
import { execFile } from 'node:child_process';
import {
  cpSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { buf, generated } from '../tidy/api.ts';
import { typeIds } from '../tidy/ids.ts';
import { isTestCode, repositoryPaths, root } from '../tidy/sources.ts';

/** One change: the first `from` in the file becomes `to`. */
export interface Edit {
  readonly path: string;
  readonly from: string;
  readonly to: string;
}

/**
 * Copies what the compiler reads into `folder`; our packages are those of the copy. Test code stays
 * out: the pages do not list it, and it is more than half of what there is to compile.
 */
export function copySources(folder: string): void {
  const wanted = /\.(ts|json|proto)$|^proto\//;
  const isWanted = (path: string) => wanted.test(path) && !isTestCode(path);
  for (const path of repositoryPaths().filter(isWanted)) {
    mkdirSync(dirname(join(folder, path)), { recursive: true });
    cpSync(join(root, path), join(folder, path));
  }
  const scope = join('node_modules', '@rackwright');
  mkdirSync(join(folder, scope), { recursive: true });
  for (const name of readdirSync(join(root, scope))) {
    symlinkSync(readlinkSync(join(root, scope, name)), join(folder, scope, name));
  }
}

/** Throws when the text to be replaced is not there: then the page that says so is old. */
export function applyEdit(folder: string, { path, from, to }: Edit): void {
  const text = readFileSync(join(folder, path), 'utf8');
  if (!text.includes(from)) throw new Error(`${path} has no "${from}"`);
  writeFileSync(
    join(folder, path),
    text.replace(from, () => to),
  );
}

/** Generates the code of changed definitions, as `npm run gen` does. */
export function generate(folder: string): void {
  const complaints = buf(join(folder, 'proto'), 'generate');
  if (complaints.length > 0) throw new Error(complaints.join('\n'));
  typeIds(join(folder, relative(root, generated)));
}

/**
 * The files that do not compile, sorted. One thread takes half the processor time of several. The
 * test runner goes on meanwhile: one that hears nothing of a test for long ends the run.
 */
export async function filesThatFail(folder: string): Promise<string[]> {
  const compiler = join(root, 'node_modules', '.bin', 'tsc');
  const cache = ['--incremental', '--tsBuildInfoFile', join(folder, 'types.tsbuildinfo')];
  const args = ['-p', 'tsconfig.json', '--pretty', 'false', '--singleThreaded', ...cache];
  const done = await new Promise<{ readonly error: Error | null; readonly output: string }>((end) =>
    execFile(compiler, args, { cwd: folder, maxBuffer: 64 * 1024 * 1024 }, (error, out, err) =>
      end({ error, output: out + err }),
    ),
  );
  const named = [...done.output.matchAll(/^([^\s(][^(]*)\(\d+,\d+\): error /gm)];
  if (done.error !== null && named.length === 0)
    throw new Error(done.output, { cause: done.error });
  return [...new Set(named.map(([, path = '']) => path))].sort();
}
