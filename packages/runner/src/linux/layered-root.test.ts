import {
  mkdir,
  mkdtemp,
  readdir,
  readFile,
  readlink,
  realpath,
  rm,
  stat,
  writeFile,
} from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { OciError } from '@rackwright/oci';
import { type WrittenEntry, writeTar } from '@rackwright/oci/testing';
import fc from 'fast-check';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { defaultUnpackLimits } from '../command/roots.ts';
import { LayeredRoot } from './layered-root.ts';

let around = '';
let root = '';

beforeEach(async () => {
  around = await realpath(await mkdtemp(join(tmpdir(), 'rackwright-root-')));
  root = join(around, 'root');
  await writeFile(join(around, 'outside'), 'untouched');
  await mkdir(root);
});

afterEach(async () => {
  const there = await readdir(around);
  const content = await readFile(join(around, 'outside'), 'utf8');
  await rm(around, { recursive: true });
  if (there.join() !== 'outside,root' || content !== 'untouched') {
    throw new Error(`something outside was touched: ${there.join()} ${content}`);
  }
});

async function* pieces(bytes: Uint8Array) {
  for (let at = 0; at < bytes.length; at += 700) yield bytes.subarray(at, at + 700);
}

async function unpack(...layers: (readonly WrittenEntry[])[]): Promise<LayeredRoot> {
  const made = new LayeredRoot(root, defaultUnpackLimits, process.getuid?.() === 0);
  for (const layer of layers) await made.apply(pieces(writeTar(layer)));
  return made;
}

async function problemOf(...layers: (readonly WrittenEntry[])[]): Promise<string> {
  try {
    await unpack(...layers);
  } catch (error) {
    if (error instanceof OciError) return error.message;
    throw error;
  }
  return 'none';
}

const file = (name: string, content = name): WrittenEntry => ({ name, content });
const link = (name: string, target: string): WrittenEntry => ({ name, type: '2', target });
const hard = (name: string, target: string): WrittenEntry => ({ name, type: '1', target });
const folder = (name: string, mode = 0o755): WrittenEntry => ({ name, type: '5', mode });

const read = (path: string): Promise<string> => readFile(join(root, path), 'utf8');

async function tree(path = ''): Promise<string[]> {
  const found: string[] = [];
  for (const entry of await readdir(join(root, path), { withFileTypes: true })) {
    const name = path === '' ? entry.name : `${path}/${entry.name}`;
    found.push(entry.isDirectory() ? `${name}/` : name);
    if (entry.isDirectory()) found.push(...(await tree(name)));
  }
  return found.sort();
}

describe('unpacks', () => {
  test('the unpacker makes files, folders, links and modes', async () => {
    await unpack([
      folder('./', 0o711),
      folder('bin/', 0o700),
      { ...file('bin/run', 'x'), mode: 0o4755 },
      hard('bin/same', 'bin/run'),
      link('bin/link', 'run'),
      file('deep/below/file'),
    ]);
    const all = ['bin/', 'bin/link', 'bin/run', 'bin/same'];
    expect(await tree()).toEqual([...all, 'deep/', 'deep/below/', 'deep/below/file']);
    const modes = await Promise.all(['.', 'bin', 'bin/run'].map((name) => stat(join(root, name))));
    expect(modes.map(({ mode }) => (mode & 0o7777).toString(8))).toEqual(['711', '700', '4755']);
    expect((await stat(join(root, 'bin/same'))).ino).toBe(modes[2]?.ino);
    expect(await readlink(join(root, 'bin/link'))).toBe('run');
  });

  test('the unpacker makes no devices and pipes, and says so', async () => {
    const types = ['3', '4', '6'].map((type) => ({ name: `dev/${type}`, type }));
    const { leftOut } = await unpack([...types, file('a')]);
    expect(leftOut).toEqual({ count: 3, names: ['dev/3', 'dev/4', 'dev/6'] });
    expect(await tree()).toEqual(['a', 'dev/']);
  });

  test('the unpacker lets a later entry replace an earlier one, whatever it was', async () => {
    await unpack(
      [file('a/b', 'below'), link('l', 'a'), folder('d'), file('d/x'), file('f')],
      [file('a', 'file now'), folder('l'), file('d/y'), folder('f')],
    );
    expect(await tree()).toEqual(['a', 'd/', 'd/x', 'd/y', 'f/', 'l/']);
    expect(await read('a')).toBe('file now');
  });
});

describe('a link', () => {
  test.each([
    ['to a folder beside it', 'real', 'real/'],
    ['to an absolute path', '/real', 'real/'],
    ['up beyond the root', '../../../real', 'real/'],
    ['through another link', 'via', 'real/'],
  ])('%s leads where it would lead inside', async (_, target) => {
    await unpack([folder('real'), link('via', '/real'), link('l', target)], [file('l/x')]);
    expect(await read('real/x')).toBe('l/x');
  });

  test('a link to the outside writes nothing there', async () => {
    await unpack([link('etc', around), link('f', join(around, 'outside'))]);
    await unpack([link('etc', around)], [file('etc/outside', 'inside')]);
    expect(await read(`${around.slice(1)}/outside`)).toBe('inside');
  });

  test('is never written through', async () => {
    await unpack([link('f', join(around, 'outside'))], [file('f', 'mine')]);
    expect(await read('f')).toBe('mine');
  });

  test('a link in a circle is refused', async () => {
    const circle = [link('a', 'b'), link('b', 'a')];
    expect(await problemOf(circle, [file('a/x')])).toContain('in a circle');
    expect(await problemOf([link('s', 's/s')], [file('s/x')])).toContain('in a circle');
  });
});

test.each([
  ['an absolute name', [file('/etc/passwd')], 'absolute'],
  ['a name that leads up', [file('a/../../outside')], 'with ".."'],
  ['a hard link to the outside', [hard('x', '../outside')], 'with ".."'],
  ['a hard link to an absolute path', [hard('x', '/etc/passwd')], 'absolute'],
  ['a hard link to nothing', [hard('x', 'missing')], 'no file in it'],
  ['a hard link to a folder', [folder('d'), hard('x', 'd')], 'no file in it'],
  ['a hard link to the root', [hard('x', './')], 'no file in it'],
  ['a file below a file', [file('f'), file('f/x')], 'below what is no folder'],
  ['a link to nothing', [link('l', '')], 'no path'],
])('the unpacker refuses %s', async (_, layer, problem) => {
  expect(await problemOf(layer)).toContain(problem);
});

test('a hard link through a link to the outside finds nothing there', async () => {
  expect(await problemOf([link('up', around), hard('x', 'up/outside')])).toContain('no file in it');
});

describe('a whiteout', () => {
  test('removes what is below, and nothing of its own layer', async () => {
    await unpack(
      [file('a'), file('d/x'), file('d/y'), file('keep')],
      [file('.wh.a', ''), file('d/.wh.x', ''), file('b'), file('.wh.b', ''), file('.wh.none', '')],
    );
    expect(await tree()).toEqual(['b', 'd/', 'd/y', 'keep']);
  });

  test('a whiteout of a folder hides what was below, wherever it stands in its layer', async () => {
    await unpack(
      [file('d/old'), file('d/sub/old'), file('d/gone/old'), file('d/same', 'old')],
      [file('d/same', 'new'), file('d/sub/new'), file('d/.wh..wh..opq', ''), file('d/last')],
    );
    expect(await tree()).toEqual(['d/', 'd/last', 'd/same', 'd/sub/', 'd/sub/new']);
    expect(await read('d/same')).toBe('new');
  });

  test('removes a link and not what it leads to', async () => {
    await unpack([file('real/x'), link('l', 'real')], [file('.wh.l', '')]);
    expect(await tree()).toEqual(['real/', 'real/x']);
  });

  test('a whiteout through a link to the outside removes nothing there', async () => {
    await unpack([link('up', around)], [file('up/.wh.outside', ''), file('up/.wh..wh..opq', '')]);
    expect(await tree()).toEqual(['up']);
  });
});

test('entries and bytes are bounded over all layers', async () => {
  const layer = [file('a', 'x'.repeat(600)), file('b', 'x'.repeat(600))];
  const apply = async (entriesMax: number, bytesMax: number): Promise<void> => {
    const made = new LayeredRoot(root, { entriesMax, bytesMax }, false);
    for (let count = 0; count < 2; count += 1) await made.apply(pieces(writeTar(layer)));
  };
  await apply(4, 2_400);
  await expect(apply(3, 2_400)).rejects.toMatchObject({ kind: 'tooLarge' });
  await expect(apply(4, 2_399)).rejects.toMatchObject({ kind: 'tooLarge' });
});

test('no layer touches a file outside the root', async () => {
  const part = fc.constantFrom('a', 'b', '..', '.', '.wh.a', '.wh..wh..opq', 'outside');
  const path = fc.array(part, { minLength: 1, maxLength: 4 }).map((parts) => parts.join('/'));
  const entry = fc.oneof(
    path.map((name) => file(name)),
    path.map((name) => folder(name)),
    fc.tuple(path, path).map(([name, target]) => hard(name, target)),
    fc.tuple(path, path).map(([name, target]) => link(name, target)),
    fc.tuple(path, path).map(([name, target]) => link(name, `/${target}`)),
    path.map((name) => link(name, '../..')),
    path.map((name) => link(name, around)),
  );
  const layer = fc.array(entry, { maxLength: 6 });
  await fc.assert(
    fc.asyncProperty(fc.array(layer, { maxLength: 3 }), async (layers) => {
      await rm(root, { recursive: true });
      await mkdir(root);
      await problemOf(...layers);
      expect(await readdir(around)).toEqual(['outside', 'root']);
      expect(await readFile(join(around, 'outside'), 'utf8')).toBe('untouched');
    }),
    { numRuns: 150 },
  );
});
