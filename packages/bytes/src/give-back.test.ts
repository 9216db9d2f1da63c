import { expect, test } from 'vitest';
import { giveBack } from './give-back.ts';

test('a piece with memory of its own is empty after it is given back', () => {
  const piece = new Uint8Array(64 * 1024);
  giveBack(piece);
  expect(piece.length).toBe(0);
});

test('memory that others may look at stays', () => {
  const whole = new Uint8Array(64 * 1024).fill(7);
  giveBack(whole.subarray(0, 32 * 1024));
  giveBack(whole.subarray(32 * 1024));
  const pooled = Buffer.from('a small piece');
  giveBack(pooled);
  const shared = new Uint8Array(new SharedArrayBuffer(64 * 1024));
  giveBack(shared);
  expect(whole.every((byte) => byte === 7)).toBe(true);
  expect(whole.length).toBe(64 * 1024);
  expect(pooled.toString()).toBe('a small piece');
  expect(shared.length).toBe(64 * 1024);
});
