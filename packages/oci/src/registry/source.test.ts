import { WebBroken, WebTooSlow } from '@rackwright/platform';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { digestOf } from '../digest.ts';
import { OciError } from '../failure.ts';
import { type BlobReading, type BlobSource, verifiedBlob } from './source.ts';

const whole = Buffer.from(Array.from({ length: 5_000 }, (_, at) => (at * 7) & 0xff));
const descriptor = { digest: digestOf(whole), sizeBytes: whole.length };

interface Serving {
  /** Connections break after so many bytes, one after the other; then one holds. */
  readonly breaks?: readonly number[];
  readonly servesRanges?: boolean;
  readonly bytes?: Uint8Array;
}

function sourceOf({ breaks = [], servesRanges = true, bytes = whole }: Serving = {}) {
  const asked: number[] = [];
  const source: BlobSource = {
    open: async (_, from) => {
      const start = servesRanges ? from : 0;
      const breaksAfter = breaks[asked.length];
      asked.push(from);
      const end = Math.min(bytes.length, start + (breaksAfter ?? bytes.length));
      async function* chunks() {
        for (let at = start; at < end; at += 512) yield bytes.subarray(at, Math.min(end, at + 512));
        if (breaksAfter !== undefined) throw new WebBroken('cut');
      }
      return { start, chunks: chunks(), close: () => {} };
    },
  };
  return { source, asked };
}

async function read(source: BlobSource, reading: BlobReading = {}): Promise<Buffer> {
  const parts: Uint8Array[] = [];
  for await (const part of verifiedBlob(source, descriptor, reading)) parts.push(part);
  return Buffer.concat(parts);
}

async function* pieces(...parts: Uint8Array[]) {
  yield* parts;
}

test('the source reads a blob whole, and not at all when it is there', async () => {
  const { source, asked } = sourceOf();
  expect((await read(source)).equals(whole)).toBe(true);
  expect(await read(source, { already: pieces(whole) })).toHaveLength(0);
  expect(asked).toEqual([0]);
});

test('a download continues where a connection broke or an earlier life ended', async () => {
  const { source, asked } = sourceOf({ breaks: [1_000, 0, 700] });
  expect((await read(source)).equals(whole)).toBe(true);
  expect(asked).toEqual([0, 1_000, 1_000, 1_700]);
  const already = pieces(whole.subarray(0, 10), whole.subarray(10, 4_000));
  expect((await read(source, { already })).equals(whole.subarray(4_000))).toBe(true);
});

test('bytes that a server without ranges sends again are dropped', async () => {
  const { source } = sourceOf({ breaks: [1_000, 300, 2_000], servesRanges: false });
  expect((await read(source)).equals(whole)).toBe(true);
});

test('the source gives up connections that bring no bytes', async () => {
  const { source, asked } = sourceOf({ breaks: Array(20).fill(0) });
  await expect(read(source)).rejects.toMatchObject({ kind: 'unreachable' });
  expect(asked).toHaveLength(3);
});

test('a reading that is given up is cancelled, and no other source is asked', async () => {
  const asked: number[] = [];
  const stop = new AbortController();
  const source: BlobSource = {
    open: async (_, from) => {
      asked.push(from);
      async function* chunks() {
        yield whole.subarray(from, from + 512);
        stop.abort();
        throw new WebBroken('the connection was cut');
      }
      return { start: from, chunks: chunks(), close: () => {} };
    },
    elsewhere: () => expect.unreachable('the source was not at fault'),
  };
  const reading = read(source, { signal: stop.signal, emptyBreaksMax: 1 });
  await expect(reading).rejects.toMatchObject({ kind: 'cancelled', message: 'given up' });
  expect(asked).toEqual([0]);
});

test('a server that sends too slowly counts as silent, and another one is asked', async () => {
  const other = sourceOf();
  let isElsewhere = false;
  const asked: number[] = [];
  const mirrored = (others: number): BlobSource => ({
    open: async (digest, from, signal) => {
      if (isElsewhere) return other.source.open(digest, from, signal);
      asked.push(from);
      async function* chunks() {
        yield whole.subarray(from, from + 1);
        throw new WebTooSlow('drips');
      }
      return { start: from, chunks: chunks(), close: () => {} };
    },
    elsewhere: () => {
      isElsewhere = others > 0;
      return isElsewhere;
    },
  });
  await expect(read(mirrored(0))).rejects.toMatchObject({ kind: 'unreachable' });
  expect(asked).toEqual([0, 1, 2]);
  expect((await read(mirrored(1))).equals(whole)).toBe(true);
  expect(other.asked).toEqual([3]);
});

test('the source gives up connections that bring a little each time, in the end', async () => {
  const { source, asked } = sourceOf({ breaks: Array(200).fill(1) });
  await expect(read(source)).rejects.toMatchObject({ kind: 'unreachable' });
  expect(asked).toHaveLength(64);
});

const mismatch = 'digestMismatch';

test.each([
  ['is longer', Buffer.concat([whole, Buffer.from('x')]), mismatch, 'longer than the 5000 bytes'],
  ['is shorter', whole.subarray(1), 'truncated', 'ends after 4999 of its 5000 bytes'],
  ['differs in a byte', Buffer.from(whole).fill(1, 2_000, 2_001), mismatch, 'but sha256:'],
])('the source refuses a blob that %s', async (_, bytes, kind, text) => {
  const { source } = sourceOf({ bytes });
  const message = expect.stringContaining(text);
  await expect(read(source)).rejects.toMatchObject({ kind, message });
});

test('a part on disk that is not the beginning of the blob is refused', async () => {
  const { source } = sourceOf();
  const already = pieces(Buffer.alloc(1_000));
  await expect(read(source, { already })).rejects.toBeInstanceOf(OciError);
});

test('whatever fails at any time, the blob is whole or refused', async () => {
  const breaks = fc.array(fc.nat({ max: 6_000 }), { maxLength: 8 });
  await fc.assert(
    fc.asyncProperty(breaks, fc.boolean(), async (where, servesRanges) => {
      const { source } = sourceOf({ breaks: where, servesRanges });
      const found = await read(source).catch((error: unknown) => {
        expect(error).toMatchObject({ kind: 'unreachable' });
        return whole;
      });
      expect(found.equals(whole)).toBe(true);
    }),
  );
});
