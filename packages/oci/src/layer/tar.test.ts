import { gunzipSync } from 'node:zlib';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { OciError } from '../failure.ts';
import { writeTar } from '../testing/tar-writer.ts';
import { captures } from './tar.fixture.ts';
import { defaultTarLimits, readTar, type TarLimits } from './tar.ts';

async function* inPieces(bytes: Uint8Array, sizes: readonly number[]) {
  let at = 0;
  for (let turn = 0; at < bytes.length; turn += 1) {
    const size = Math.max(1, sizes[turn % sizes.length] ?? 1);
    yield bytes.subarray(at, at + size);
    at += size;
  }
}

/** One line per entry. */
async function linesOf(
  bytes: Uint8Array,
  sizes: readonly number[] = [100_000],
  limits: Partial<TarLimits> = {},
): Promise<string[]> {
  const lines: string[] = [];
  for await (const entry of readTar(inPieces(bytes, sizes), { ...defaultTarLimits, ...limits })) {
    const { name, mode, uid, kind } = entry;
    let rest = '';
    if (entry.kind === 'file')
      for await (const part of entry.content) rest += String(Buffer.from(part));
    if (entry.kind === 'symlink' || entry.kind === 'hardlink') rest = entry.target;
    lines.push(`${kind} ${mode.toString(8)} ${uid} ${name} ${rest}`.trim());
  }
  return lines;
}

async function problemOf(bytes: Uint8Array, limits: Partial<TarLimits> = {}): Promise<string> {
  try {
    await linesOf(bytes, [700], limits);
  } catch (error) {
    if (error instanceof OciError) return `${error.kind}: ${error.message}`;
    throw error;
  }
  return 'none';
}

const captured = (format: keyof typeof captures): Buffer =>
  gunzipSync(Buffer.from(captures[format], 'base64'));
const long = `file 644 1000 ./long/${'n'.repeat(120)} x`;

describe('reads what GNU tar has written', () => {
  test.each(['ustar', 'gnu', 'pax', 'v7'] as const)(
    'the reader reads an archive in the format %s',
    async (format) => {
      const lines = await linesOf(captured(format));
      expect(lines).toEqual([
        'folder 755 1000 ./',
        'file 4755 1000 ./f hello',
        'hardlink 4755 1000 ./hard ./f',
        'folder 755 1000 ./long/',
        'symlink 777 1000 ./long/link ../f',
        ...(format === 'gnu' || format === 'pax' ? [long] : []),
        ...(format === 'v7' ? [] : ['special 644 1000 ./pipe']),
        'folder 1777 1000 ./sticky/',
      ]);
    },
  );

  test('the reader reads an archive in pieces of any size', async () => {
    const whole = await linesOf(captured('pax'));
    const sizes = fc.array(fc.integer({ min: 1, max: 1_500 }), { minLength: 1, maxLength: 5 });
    await fc.assert(
      fc.asyncProperty(sizes, async (pieces) => {
        expect(await linesOf(captured('pax'), pieces)).toEqual(whole);
      }),
      { numRuns: 40 },
    );
  });
});

test('an archive cut between two entries has ended; cut within one it is broken', async () => {
  const whole = writeTar([
    { name: 'a', content: 'one' },
    { name: 'b', content: 'two' },
  ]);
  for (let length = 0; length < whole.length; length += 1) {
    const problem = await problemOf(whole.subarray(0, length));
    // Header and contents of each take two blocks; from the first block of zeros on all is over.
    const mayEnd = length % 1_024 === 0 || length >= 2_560;
    expect([length, problem]).toEqual([
      length,
      mayEnd ? 'none' : 'malformed: the archive ends within an entry',
    ]);
  }
});

const header = (changes: (block: Buffer) => void, checksum = true): Buffer => {
  const block = writeTar([{ name: 'a' }]).subarray(0, 512);
  changes(block);
  if (!checksum) return block;
  block.write('        ', 148, 'latin1');
  const sum = block.reduce((total, byte) => total + byte, 0);
  block.write(`${sum.toString(8).padStart(6, '0')}\0 `, 148, 'latin1');
  return block;
};
const pax = (text: string) =>
  writeTar([{ name: 'x', type: 'x', content: text }]).subarray(0, 1_024);

test.each([
  ['a wrong checksum', header((block) => block.write('b', 0), false), 'wrong checksum'],
  ['no number', header((block) => block.write('8', 124)), 'without a number'],
  ['a size beyond counting', header((block) => block.fill(0xff, 124, 136)), 'without a number'],
  [
    'no owner',
    header((block) => block.fill(0xff, 112, 116).fill(0, 109, 112).fill(0x80, 108, 109)),
    'an owner',
  ],
  ['an unknown type', header((block) => block.write('Z', 156)), 'unknown type "Z"'],
  ['a sparse file', header((block) => block.write('S', 156)), 'sparse'],
  ['a name that is no text', header((block) => block.fill(0xff, 0, 3)), 'not UTF-8'],
  ['a record longer than its header', pax('99 path=a\n'), 'cannot be read'],
  ['a record without a length', pax('x path=a\n'), 'cannot be read'],
  ['a record of no length', pax('0 path=a\n'), 'cannot be read'],
  ['a record without an end', pax('9 path=ab'), 'cannot be read'],
  ['a record without a key', pax('7 =abc\n'), 'without "="'],
  ['a size that is no number', pax('11 size=-1\n'), 'size that is no number'],
  ['a sparse file of pax', pax('22 GNU.sparse.major=1\n'), 'sparse'],
  ['an extension of nothing', pax('10 path=a\n'), 'ends within an entry'],
  ['extensions without end', Buffer.concat(Array(20).fill(pax('10 path=a\n'))), 'again and again'],
])('the reader refuses %s', async (_, bytes, problem) => {
  expect(await problemOf(bytes)).toContain(problem);
});

test('the reader bounds entries, contents and headers', async () => {
  const three = writeTar(['a', 'b', 'c'].map((name) => ({ name, content: 'x'.repeat(600) })));
  expect(await problemOf(three, { entriesMax: 3 })).toBe('none');
  expect(await problemOf(three, { entriesMax: 2 })).toContain('tooLarge: the archive has more');
  expect(await problemOf(three, { contentBytesMax: 1_800 })).toBe('none');
  expect(await problemOf(three, { contentBytesMax: 1_799 })).toContain('tooLarge');
  const huge = writeTar([{ name: 'a', type: 'L', size: 70_000 }]);
  expect(await problemOf(huge)).toContain('tooLarge: the archive has a header of more than 65536');
});

test('the size of an entry without contents is ignored', async () => {
  const bytes = writeTar([
    { name: 'd/', type: '5', size: 9 },
    { name: 'f', content: 'x' },
  ]);
  expect(await linesOf(bytes)).toEqual(['folder 644 0 d/', 'file 644 0 f x']);
});

test('the reader skips contents that are not read', async () => {
  const names: string[] = [];
  const bytes = writeTar([{ name: 'a', content: 'x'.repeat(1_300) }, { name: 'b' }]);
  for await (const { name } of readTar(inPieces(bytes, [7]))) names.push(name);
  expect(names).toEqual(['a', 'b']);
});

test('any bytes end in entries or in our own error', async () => {
  const block = fc.uint8Array({ minLength: 512, maxLength: 512 });
  await fc.assert(
    fc.asyncProperty(fc.array(block, { maxLength: 4 }), async (blocks) => {
      await problemOf(Buffer.concat(blocks));
    }),
  );
  const place = fc.nat({ max: 4_000 });
  await fc.assert(
    fc.asyncProperty(place, fc.integer({ min: 0, max: 255 }), async (at, byte) => {
      const bytes = captured('pax');
      bytes[at] = byte;
      await problemOf(bytes);
    }),
  );
});
