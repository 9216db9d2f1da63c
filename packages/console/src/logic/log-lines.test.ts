/** The log of a step is shown as its end, bounded, and free of a terminal's control sequences. */
import { expect, test } from 'vitest';
import { emptyLog, logCharsMax, withPiece } from './log-lines.ts';

const piece = (text: string, log = emptyLog, offset = log.nextOffset) =>
  withPiece(log, text, offset, text.length);

test('pieces make one text, and what lies between them unkept is said', () => {
  const log = piece('two\n', piece('one\n'));
  expect(log).toEqual({ text: 'one\ntwo\n', isCut: false, nextOffset: 8n });
  const gap = piece('nine\n', log, 100n);
  expect(gap.text).toBe('one\ntwo\n\n… not kept …\nnine\n');
  expect(gap).toMatchObject({ isCut: true, nextOffset: 105n });
});

test('a log that does not end is kept as its last lines', () => {
  let log = emptyLog;
  for (let at = 0; at < 60_000; at += 1_000) log = piece('a line of a log\n'.repeat(1_000), log);
  expect(log.text.length).toBeLessThanOrEqual(logCharsMax);
  expect(log.text.startsWith('a line')).toBe(true);
  expect(log.isCut).toBe(true);
});

test('colours are removed; of an overwritten line the last form stays', () => {
  const escape = String.fromCharCode(27);
  const log = piece(`${escape}[31mred${escape}[0m\r\n10 %\r50 %\r90 %\n`);
  expect(log.text).toBe('red\n90 %\n');
  const growing = piece('50 %\r', piece('10 %\r'));
  expect(piece('done\n', growing).text).toBe('done\n');
  expect(piece('x'.repeat(logCharsMax)).text).toHaveLength(logCharsMax);
});
