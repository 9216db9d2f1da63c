import { expect, test } from 'vitest';
import { afterImmediates, afterMicrotasks, type LogLine, recordingLog } from './index.ts';

test('a recorded line has its level, its error, and the fields of the logs around it', () => {
  const lines: LogLine[] = [];
  const log = recordingLog((line) => void lines.push(line));
  const error = new Error('broken');
  log.child({ host: 'h1', run: 1 }).child({ run: 2 }).warn({ step: 'a' }, 'it failed', error);
  log.debug({}, 'it began');
  expect(lines).toEqual([
    { level: 'warn', fields: { host: 'h1', run: 2, step: 'a' }, message: 'it failed', error },
    { level: 'debug', fields: {}, message: 'it began', error: undefined },
  ]);
});

test('a wait for microtasks ends after so many, one for the event loop after all', async () => {
  let reactions = 0;
  const react = async () => {
    for (; reactions < 10; reactions += 1) await Promise.resolve();
  };
  void react();
  await afterMicrotasks(4);
  expect(reactions).toBeGreaterThan(0);
  expect(reactions).toBeLessThan(10);
  await afterImmediates(1);
  expect(reactions).toBe(10);
});
