import { randomBytes } from 'node:crypto';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { lastLine, lastLines, OutputTail } from './output-tail.ts';

test('the tail keeps exactly the last bytes, however they come', () => {
  fc.assert(
    fc.property(fc.array(fc.nat({ max: 300 }), { maxLength: 40 }), (sizes) => {
      const tail = new OutputTail(100);
      const pieces = sizes.map((size) => randomBytes(size));
      for (const piece of pieces) tail.push(piece);
      const all = Buffer.concat(pieces);
      expect(tail.totalBytes).toBe(all.length);
      expect(Buffer.from(tail.tail()).equals(all.subarray(Math.max(0, all.length - 100)))).toBe(
        true,
      );
    }),
  );
});

test('the tail shows the last lines as text, without what would disturb a terminal', () => {
  const output = Buffer.from('1\n2\n3\n4\n5\r\n\n\u001b[31m6\u001b[0m\tok\n');
  expect(lastLines(output)).toBe('2\n3\n4\n5\n[31m6[0m\tok');
  expect(lastLine(output)).toBe('[31m6[0m\tok');
  expect(lastLine(Buffer.from(' \n\n'))).toBe('');
  expect(lastLines(Buffer.alloc(0))).toBe('');
});

test('the tail begins a text that was cut with a whole character', () => {
  expect(lastLine(Buffer.from('äb').subarray(1))).toBe('b');
  expect(lastLine(Buffer.from('x'.repeat(1000)))).toHaveLength(200);
});
