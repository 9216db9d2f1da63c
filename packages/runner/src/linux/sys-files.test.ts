import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { isOwnLack, namesIn, readText, resolvePath } from './sys-files.ts';

let folder = '';

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'rackwright-sys-'));
});

afterEach(() => rmSync(folder, { recursive: true }));

test('a missing file, folder or link reads as empty', async () => {
  writeFileSync(join(folder, 'file'), 'text\n');
  mkdirSync(join(folder, 'block'));
  writeFileSync(join(folder, 'block/sda'), '');
  expect(await namesIn(folder, 'block')).toEqual(['sda']);
  expect(await readText(folder, 'file')).toBe('text');
  for (const name of ['none', 'file/below']) {
    expect(await namesIn(folder, name), name).toEqual([]);
    expect(await readText(folder, name), name).toBe('');
    expect(await resolvePath(folder, name), name).toBe('');
  }
  expect(await readText(folder, 'block'), 'has nothing to read').toBe('');
});

test('a folder or a link that cannot be read rejects', async () => {
  symlinkSync('round', join(folder, 'round'));
  for (const name of ['round', 'x'.repeat(300)]) {
    await expect(namesIn(folder, name), name).rejects.toThrow(/ELOOP|ENAMETOOLONG/);
    await expect(resolvePath(folder, name), name).rejects.toThrow(/ELOOP|ENAMETOOLONG/);
  }
});

test('a lack of this process is no refusal of a device', () => {
  const errorOf = (code: string) => Object.assign(new Error(code), { code });
  expect(['EMFILE', 'ENFILE', 'ENOMEM'].map(errorOf).every(isOwnLack)).toBe(true);
  expect(['EIO', 'EINVAL', 'EACCES', 'ENODEV'].map(errorOf).some(isOwnLack)).toBe(false);
  expect(isOwnLack(undefined)).toBe(false);
});
