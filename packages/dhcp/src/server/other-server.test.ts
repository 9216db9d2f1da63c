import { expect, test } from 'vitest';
import { afterOtherServer, isQuiet, serving } from './other-server.ts';

test('the server falls silent at the first trace of another server, and says so once', () => {
  const first = afterOtherServer(serving, '10.77.0.2', 1_000, 500);
  expect(first.isNews).toBe(true);
  expect(isQuiet(first.quiet, 1_499)).toBe(true);
  const again = afterOtherServer(first.quiet, '10.77.0.2', 1_400, 500);
  expect(again.isNews).toBe(false);
  expect(isQuiet(again.quiet, 1_899)).toBe(true);
});

test('the server serves again after a silence of the other, and reports the next trace', () => {
  const { quiet } = afterOtherServer(serving, '10.77.0.2', 1_000, 500);
  expect(isQuiet(quiet, 1_500)).toBe(false);
  expect(afterOtherServer(quiet, '10.77.0.2', 1_500, 500).isNews).toBe(true);
});

test('the server reports a third server as well', () => {
  const { quiet } = afterOtherServer(serving, '10.77.0.2', 1_000, 500);
  expect(afterOtherServer(quiet, '10.77.0.3', 1_100, 500).isNews).toBe(true);
});

test('the server is never silent without a reason', () => {
  expect(isQuiet(serving, Number.MAX_SAFE_INTEGER)).toBe(false);
});
