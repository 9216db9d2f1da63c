import fc from 'fast-check';
import { expect, test } from 'vitest';
import { QuestionMemory, transactionIdOf } from './question-memory.ts';

const anyDatagram = fc.uint8Array({ minLength: 10, maxLength: 600 });

test('a question is known when only its transaction and its seconds are others', () => {
  fc.assert(
    fc.property(anyDatagram, fc.uint8Array({ minLength: 6, maxLength: 6 }), (asked, other) => {
      const memory = new QuestionMemory<string>(4);
      memory.keep(asked, 'kept');
      const again = asked.slice();
      again.set(other, 4);
      expect(memory.find(again)).toBe('kept');
    }),
  );
});

test('a question that differs in any other byte, or in length, is not known', () => {
  const asked = new Uint8Array(300).fill(1);
  const memory = new QuestionMemory<string>(4);
  memory.keep(asked, 'kept');
  for (const at of [0, 3, 10, 11, 239, 240, 299]) {
    const other = asked.slice();
    other[at] = 2;
    expect(memory.find(other), `byte ${at}`).toBeUndefined();
  }
  expect(memory.find(asked.subarray(0, 299))).toBeUndefined();
  expect(memory.find(new Uint8Array([...asked, 1]))).toBeUndefined();
});

/** FNV-1a of the bytes that are looked at: what a stranger can compute as well. */
function digest(bytes: Uint8Array): number {
  let hash = 0x811c_9dc5;
  for (const [at, byte] of bytes.entries()) {
    if (at < 4 || at >= 10) hash = Math.imul(hash ^ byte, 0x0100_0193);
  }
  return hash;
}

test('another question of the same digest is another question', () => {
  // All pairs of two ends, until two of 65,536 meet.
  const seen = new Map<number, Uint8Array>();
  let pair: [Uint8Array, Uint8Array] | undefined;
  for (let index = 0; pair === undefined && index < 1_000_000; index += 1) {
    const bytes = new Uint8Array(16);
    new DataView(bytes.buffer).setUint32(12, Math.imul(index, 0x9e37_79b1) >>> 0);
    const met = seen.get(digest(bytes));
    if (met !== undefined) pair = [met, bytes];
    seen.set(digest(bytes), bytes);
  }
  if (pair === undefined) throw new Error('no two questions of one digest were found');
  const memory = new QuestionMemory<string>(4);
  memory.keep(pair[0], 'first');
  expect(memory.find(pair[1])).toBeUndefined();
  memory.keep(pair[1], 'second');
  expect([memory.find(pair[0]), memory.find(pair[1])]).toEqual([undefined, 'second']);
});

test('the memory keeps a copy of the packet, and no view of it', () => {
  const asked = new Uint8Array(300).fill(1);
  const memory = new QuestionMemory<string>(4);
  memory.keep(asked, 'kept');
  const same = asked.slice();
  asked.fill(9);
  expect(memory.find(same)).toBe('kept');
});

test('beyond its size the oldest is forgotten, and a long question is not kept at all', () => {
  const memory = new QuestionMemory<number>(2);
  const asked = [1, 2, 3].map((byte) => new Uint8Array(300).fill(byte));
  for (const [index, one] of asked.entries()) memory.keep(one, index);
  expect(asked.map((one) => memory.find(one))).toEqual([undefined, 1, 2]);
  const long = new Uint8Array(1_025);
  memory.keep(long, 4);
  expect(memory.find(long)).toBeUndefined();
  expect(memory.find(asked[1] ?? long)).toBe(1);
});

test('a transaction is an unsigned number of 32 bits', () => {
  expect(transactionIdOf(Uint8Array.of(0, 0, 0, 0, 0xff, 0xff, 0xff, 0xfe))).toBe(0xffff_fffe);
  expect(transactionIdOf(new Uint8Array())).toBe(0);
});
