/** Files that comments name exist: a file that is renamed keeps no stale name behind. */
import { commentBlocksOf } from './code-text.ts';
import type { Finding, SourceFile } from './sources.ts';

const fileName = /(?<![\w*/….-])(?:\.{1,2}\/)*([\w-][\w./-]*\.tsx?)\b(?![/\w])/g;

/** The ends of all paths: the name of each file, alone and with the folders above it. */
export function pathEndsOf(paths: readonly string[]): ReadonlySet<string> {
  return new Set(
    paths.flatMap((path) => {
      const parts = path.split('/');
      return parts.map((_, index) => parts.slice(index).join('/'));
    }),
  );
}

/** Names of TypeScript files in comments that no file of the repository ends with. */
export function findStaleFileNames(file: SourceFile, ends: ReadonlySet<string>): Finding[] {
  return commentBlocksOf(file.text).flatMap(({ first, text }) =>
    text.split('\n').flatMap((line, index) =>
      [...line.matchAll(fileName)].flatMap(([, name = '']) => {
        if (ends.has(name)) return [];
        return [{ path: file.path, line: first + index, message: `there is no ${name}` }];
      }),
    ),
  );
}
