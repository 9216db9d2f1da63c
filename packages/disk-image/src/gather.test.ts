import fc from 'fast-check';
import { expect, test } from 'vitest';
import { gathered, type PieceMemory } from './gather.ts';

const memory = (bytes: number): PieceMemory => [new Uint8Array(bytes), new Uint8Array(bytes)];

async function* chunksOf(lengths: readonly number[], end: () => void = () => {}) {
  let at = 0;
  try {
    for (const length of lengths) yield Uint8Array.from({ length }, () => at++ & 0xff);
  } finally {
    end();
  }
}

test('the gatherer gathers pieces of one size, whatever comes, and loses nothing', async () => {
  const lengths = fc.array(fc.integer({ min: 0, max: 40 }), { maxLength: 30 });
  await fc.assert(
    fc.asyncProperty(lengths, fc.integer({ min: 1, max: 50 }), async (cut, pieceBytes) => {
      const total = cut.reduce((sum, length) => sum + length, 0);
      const sizes: number[] = [];
      let at = 0;
      for await (const piece of gathered(chunksOf(cut), memory(pieceBytes))) {
        sizes.push(piece.length);
        for (const byte of piece) expect(byte).toBe(at++ & 0xff);
      }
      expect(at).toBe(total);
      expect(sizes.slice(0, -1).every((size) => size === pieceBytes)).toBe(true);
    }),
  );
});

test('the gatherer reads one piece ahead, and stops when nobody asks any more', async () => {
  let given = 0;
  let ended = false;
  async function* endless() {
    try {
      for (;;) {
        given += 1;
        yield new Uint8Array(10);
      }
    } finally {
      ended = true;
    }
  }
  for await (const piece of gathered(endless(), memory(20))) {
    expect(piece).toHaveLength(20);
    break;
  }
  expect(ended).toBe(true);
  expect(given).toBeLessThanOrEqual(4);
});

test('the gatherer passes on an error of the source after the whole pieces before it', async () => {
  async function* broken() {
    yield new Uint8Array(25);
    throw new Error('cut');
  }
  const pieces = gathered(broken(), memory(20));
  expect((await pieces.next()).value).toHaveLength(20);
  await expect(pieces.next()).rejects.toThrow('cut');
});
