import { gzipSync, zstdCompressSync } from 'node:zlib';
import { expect, test } from 'vitest';
import { type ByteFilter, unpack } from './unpack.ts';

const mebibyte = 1024 * 1024;
const noXz: ByteFilter = () => {
  throw new Error('no xz here');
};
/** Content of which no two mebibytes are the same. */
const content = Buffer.alloc(3 * mebibyte + 5);
for (let at = 0; at < content.length; at += 1) content[at] = (at * 7919) >> 6;

async function* cut(bytes: Uint8Array, pieceBytes: number) {
  for (let at = 0; at < bytes.length; at += pieceBytes) yield bytes.subarray(at, at + pieceBytes);
}

const packers = { gzip: gzipSync, zstd: zstdCompressSync };
const cases = (['gzip', 'zstd'] as const).flatMap((kind) =>
  [1_000, 65_536, 4 * mebibyte].map((pieceBytes) => [kind, pieceBytes] as const),
);

test.for(cases)('several frames of %s are unpacked in pieces of %i bytes', async ([kind, size]) => {
  const frames = [content, Buffer.alloc(0), content.subarray(0, 2 * mebibyte), content];
  const packed = Buffer.concat(frames.map((frame) => packers[kind](frame)));
  const parts: Buffer[] = [];
  const never = new AbortController().signal;
  for await (const piece of unpack(kind, cut(packed, size), noXz, never)) {
    parts.push(Buffer.from(piece));
  }
  expect(Buffer.concat(parts).equals(Buffer.concat(frames))).toBe(true);
});

test('the memory of a piece is given back when the next one is asked for', async () => {
  const kept: Uint8Array[] = [];
  const never = new AbortController().signal;
  const packed = cut(zstdCompressSync(content), mebibyte);
  for await (const piece of unpack('zstd', packed, noXz, never)) kept.push(piece);
  const keptBytes = kept.reduce((sum, { length }) => sum + length, 0);
  expect(keptBytes).toBeLessThan(mebibyte);
});
