import { expect, test } from 'vitest';
import { findStaleFileNames, pathEndsOf } from './cited-files.ts';

const ends = pathEndsOf(['a/src/b/c.ts', 'a/page.tsx']);

function stale(text: string): unknown[] {
  const found = findStaleFileNames({ path: 'a/src/d.ts', text }, ends);
  return found.map(({ line, message }) => [line, message]);
}

test('the check takes a comment that names a file by the end of its path', () => {
  expect(stale('// (`c.ts`), b/c.ts, a/src/b/c.ts, ../b/c.ts, page.tsx.')).toEqual([]);
  expect(stale('// `test-….ts`, `*.test.ts`, e.tsv, pots')).toEqual([]);
  expect(stale("const name = 'gone.ts'; // as c.ts")).toEqual([]);
});

test('the check finds a comment that names a file that does not exist', () => {
  expect(stale('/**\n * As in `b/gone.ts`.\n */\na; // gone.tsx')).toEqual([
    [2, 'there is no b/gone.ts'],
    [4, 'there is no gone.tsx'],
  ]);
  expect(stale('// src/c.ts')).toEqual([[1, 'there is no src/c.ts']]);
});
