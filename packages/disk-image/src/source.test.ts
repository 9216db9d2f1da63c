import { createHash } from 'node:crypto';
import { expect, test } from 'vitest';
import { digestPieces, rangesOf } from './ranges.ts';
import { type ByteSource, type OpenBytes, readFrom, SourceBroken } from './source.ts';

const { signal } = new AbortController();
const content = Buffer.from(Array.from({ length: 3_000_000 }, (_, index) => (index * 7) % 251));
const sha256 = createHash('sha256').update(content).digest('hex');

interface Behaviour {
  /** Each connection brings so many bytes and breaks; the last of them for ever. */
  readonly breaksAfter?: readonly number[];
  readonly says?: number;
  readonly start?: number;
  readonly bytes?: Uint8Array;
}

function sourceOf({ breaksAfter = [], says, start, bytes = content }: Behaviour = {}) {
  const opened: number[] = [];
  let count = 0;
  const source: ByteSource = {
    open: async (from): Promise<OpenBytes> => {
      opened.push(from);
      const most = breaksAfter[Math.min(count, breaksAfter.length - 1)];
      count += 1;
      const begin = start ?? from;
      return {
        start: begin,
        ...(says === undefined ? {} : { sizeBytes: says }),
        chunks: (async function* () {
          const end = most === undefined ? bytes.length : Math.min(bytes.length, begin + most);
          for (let at = begin; at < end; at += 65_536) {
            yield bytes.subarray(at, Math.min(at + 65_536, end));
          }
          if (end < bytes.length) throw new SourceBroken('cut');
        })(),
        close: () => {},
      };
    },
  };
  return { source, opened };
}

async function readAll(source: ByteSource, sizeBytes?: number): Promise<Buffer> {
  const chunks: Uint8Array[] = [];
  for await (const chunk of readFrom(source, 0, sizeBytes, signal)) chunks.push(chunk);
  return Buffer.concat(chunks);
}

test('the source takes up a broken connection where it broke', async () => {
  const { source, opened } = sourceOf({ breaksAfter: [100_000, 1, 0, 2_000_000] });
  expect((await readAll(source, content.length)).equals(content)).toBe(true);
  expect(opened).toEqual([0, 100_000, 100_001, 100_001, 2_100_001]);
});

test('the source reads on from the start where the server knows no ranges', async () => {
  const { source } = sourceOf({ breaksAfter: [100_000, 3_000_000], start: 0 });
  expect((await readAll(source)).equals(content)).toBe(true);
});

test.each([
  ['unreachable', { breaksAfter: [0] }, content.length, 'after 0 bytes: cut'],
  ['truncated', {}, content.length + 1, 'ends after 3000000 of 3000001 bytes'],
  ['truncated', { says: 2_000_000 }, content.length, 'what is served has 2000000'],
  ['tooLong', {}, content.length - 1, 'more came than the 2999999 bytes'],
  ['tooLong', { says: content.length }, 5, 'the image has 5 bytes'],
  ['unreachable', { says: 3_000_001 }, 3_000_001, 'only 3000000 of 3000001 bytes came'],
])('the source ends with %s', async (fault, behaviour, sizeBytes, text) => {
  const reading = readAll(sourceOf(behaviour).source, sizeBytes);
  await expect(reading).rejects.toMatchObject({ fault, message: expect.stringContaining(text) });
});

test('the source reads at any place what was digested before, and nothing else', async () => {
  const { source } = sourceOf();
  const pieces = await digestPieces(source, { sha256 }, { signal });
  expect(pieces.sizeBytes).toBe(content.length);
  const ranges = rangesOf(source, pieces, { signal });
  for (const [offset, length] of [
    [0, 10],
    [2_900_000, 100_000],
    [1_048_570, 1_048_600],
    [5, 0],
  ] as const) {
    const bytes = await ranges.read(offset, length);
    expect(content.subarray(offset, offset + length).equals(bytes)).toBe(true);
  }
  await expect(ranges.read(2_999_999, 2)).rejects.toMatchObject({ fault: 'malformed' });
  await ranges.close();

  const changed = Buffer.from(content);
  changed[2_500_000] = 1 + (changed[2_500_000] ?? 0);
  const swapped = rangesOf(sourceOf({ bytes: changed }).source, pieces, { signal });
  await swapped.read(0, 1_000);
  await expect(swapped.read(2_100_000, 1)).rejects.toMatchObject({ fault: 'digestMismatch' });
  await swapped.close();
  const reading = digestPieces(sourceOf({ bytes: changed }).source, { sha256 }, { signal });
  await expect(reading).rejects.toMatchObject({ fault: 'digestMismatch' });
});
