import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { isAbsent } from './absent.ts';

const errorOf = (path: string): Promise<unknown> =>
  readFile(path).then(
    () => undefined,
    (error: unknown) => error,
  );

test('isAbsent is true for a path that does not exist, and for no other error', async () => {
  expect(isAbsent(await errorOf(join(import.meta.dirname, 'no such file')))).toBe(true);
  expect(isAbsent(await errorOf(import.meta.dirname))).toBe(false);
  for (const other of [new Error('ENOENT'), { code: 'ENOENT' }, null, undefined]) {
    expect(isAbsent(other)).toBe(false);
  }
});
