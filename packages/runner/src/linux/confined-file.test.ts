import {
  existsSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { readConfined, writeConfined } from './confined-file.ts';

let folder = '';
let root = '';
const file = { content: Buffer.from('new'), mode: 0o640 };

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'rackwright-confined-'));
  root = join(folder, 'root');
  mkdirSync(join(root, 'etc'), { recursive: true });
  writeFileSync(join(folder, 'outside'), 'untouched');
});

afterEach(() => {
  const outside = readFileSync(join(folder, 'outside'), 'utf8');
  const names = readdirSync(folder).sort().join(' ');
  rmSync(folder, { recursive: true });
  if (`${outside} ${names}` !== 'untouched outside root') throw new Error(`${outside} ${names}`);
});

test('a file is written with its mode, in folders made for it, and read back', async () => {
  await writeConfined(root, '/etc/new/deep/file', file);
  expect(readFileSync(join(root, 'etc/new/deep/file'), 'utf8')).toBe('new');
  const read = await readConfined(root, '/etc/new/deep/file', 100);
  expect([Buffer.from(read.content).toString(), read.mode]).toEqual(['new', 0o640]);
  expect(readdirSync(join(root, 'etc/new/deep'))).toEqual(['file']);
});

test('the runner replaces a file, and what a killed runner left', async () => {
  writeFileSync(join(root, 'etc/file'), 'old');
  symlinkSync('../../outside', join(root, 'etc/.rackwright-write'));
  await writeConfined(root, '/etc/file', file);
  expect(readFileSync(join(root, 'etc/file'), 'utf8')).toBe('new');
  expect(readdirSync(join(root, 'etc'))).toEqual(['file']);
});

test('the runner rejects with the reason when its temporary file cannot be removed', async () => {
  mkdirSync(join(root, 'etc/.rackwright-write'));
  const refusal = await writeConfined(root, '/etc/file', file).catch((error: unknown) => error);
  expect(refusal).toMatchObject({ syscall: 'unlink' });
});

test.each([
  ['an absolute link', '/etc/target', '/etc/file'],
  ['a link beside it', 'target', '/etc/file'],
  ['a link up and down again', '../etc/./target', '/etc/file'],
  ['a link that climbs above the root', '../../../../etc/target', '/etc/file'],
])('the runner follows %s as if the root were "/"', async (_name, target, path) => {
  symlinkSync(target, join(root, 'etc/file'));
  await writeConfined(root, path, file);
  expect(readFileSync(join(root, 'etc/target'), 'utf8')).toBe('new');
  expect(lstatSync(join(root, 'etc/file')).isSymbolicLink()).toBe(true);
  const { content } = await readConfined(root, path, 100);
  expect(Buffer.from(content).toString()).toBe('new');
});

test('the runner keeps folders that are links inside', async () => {
  symlinkSync('../..', join(root, 'up'));
  symlinkSync(folder, join(root, 'out'));
  await writeConfined(root, '/up/one', file);
  await writeConfined(root, '/out/two', file);
  expect(existsSync(join(root, 'one'))).toBe(true);
  expect(existsSync(join(root, folder, 'two'))).toBe(true);
});

test.each([
  ['a folder', '/etc'],
  ['the root', '/'],
  ['a path through a file', '/plain/file'],
  ['links in a circle', '/round'],
])('the runner refuses %s', async (_name, path) => {
  writeFileSync(join(root, 'plain'), '');
  symlinkSync('round', join(root, 'round'));
  const refusal = await writeConfined(root, path, file).catch((error: unknown) => String(error));
  expect(refusal).toMatch(/^BadPath: /);
});

test('the runner reads no more than it may, and makes nothing when it reads', async () => {
  writeFileSync(join(root, 'long'), 'x'.repeat(1000));
  expect((await readConfined(root, '/long', 10)).content).toHaveLength(11);
  const missing = await readConfined(root, '/no/file', 10).catch((error: unknown) => String(error));
  expect(missing).toContain('ENOENT');
  expect(readdirSync(root).sort()).toEqual(['etc', 'long']);
});
