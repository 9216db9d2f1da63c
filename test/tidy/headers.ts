/** Every module says what it is for, at the top or right after its imports. */
import type { Finding, SourceFile } from './sources.ts';

export function findMissingHeader(file: SourceFile): Finding[] {
  if (file.path.endsWith('.test.ts')) return [];
  const text = file.text.replace(/^#!.*\n/, '').replace(/^import [^;]*;\n/gm, '');
  if (text.trimStart().startsWith('/**')) return [];
  const message = 'declares something before a /** comment that says what the module is for';
  return [{ path: file.path, line: 1, message }];
}
