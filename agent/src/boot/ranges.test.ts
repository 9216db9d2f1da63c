import fc from 'fast-check';
import { expect, test } from 'vitest';
import { decideRange } from './ranges.ts';

test.each([
  [undefined, { kind: 'whole' }],
  ['bytes=0-99', { kind: 'part', start: 0, end: 99 }],
  ['bytes=10-', { kind: 'part', start: 10, end: 99 }],
  ['bytes=-10', { kind: 'part', start: 90, end: 99 }],
  ['bytes=-1000', { kind: 'part', start: 0, end: 99 }],
  ['bytes=50-1000', { kind: 'part', start: 50, end: 99 }],
  ['bytes=99-99', { kind: 'part', start: 99, end: 99 }],
  ['bytes=100-', { kind: 'unsatisfiable' }],
  ['bytes=100-200', { kind: 'unsatisfiable' }],
  ['bytes=-0', { kind: 'unsatisfiable' }],
  ['bytes=5-4', { kind: 'whole' }],
  ['bytes=-', { kind: 'whole' }],
  ['bytes=0-1,5-6', { kind: 'whole' }],
  ['lines=0-1', { kind: 'whole' }],
  ['bytes=a-b', { kind: 'whole' }],
  [`bytes=${'9'.repeat(30)}-`, { kind: 'whole' }],
])('the server decides on %j of 100 bytes', (header, decision) => {
  expect(decideRange(header, 100)).toEqual(decision);
});

test('an empty file has no satisfiable range', () => {
  expect(decideRange('bytes=0-', 0)).toEqual({ kind: 'unsatisfiable' });
  expect(decideRange('bytes=-5', 0)).toEqual({ kind: 'unsatisfiable' });
  expect(decideRange(undefined, 0)).toEqual({ kind: 'whole' });
});

test('a part always lies inside the file', () => {
  const position = fc.option(fc.nat(300), { nil: undefined });
  fc.assert(
    fc.property(position, position, fc.nat(200), (first, last, size) => {
      const range = decideRange(`bytes=${first ?? ''}-${last ?? ''}`, size);
      if (range.kind !== 'part') return;
      expect(range.start).toBeGreaterThanOrEqual(0);
      expect(range.end).toBeGreaterThanOrEqual(range.start);
      expect(range.end).toBeLessThan(size);
    }),
  );
});
