import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { sanitizeLog } from './nvme-sanitize.fixture.ts';
import { parseNvmeSanitize } from './nvme-sanitize.ts';

const kinds = ['unknown', 'done', 'running', 'failed', 'done', 'unknown'];

describe('the sanitize log', () => {
  test.each(['status', 'meaning'] as const)(
    'each state is read where it is named by its %s',
    (by) => {
      expect(kinds.map((_, state) => parseNvmeSanitize(sanitizeLog(by, state)).kind)).toEqual(
        kinds,
      );
    },
  );

  test('the state is read where SSTAT is a number, with and without the name of the device', () => {
    expect(parseNvmeSanitize({ nvme0: { sstat: 0x102, sprog: 0 } }).kind).toBe('running');
    expect(parseNvmeSanitize({ sstat: 0x101, sprog: 65_535 }).kind).toBe('done');
  });

  test('the progress is told in percent', () => {
    expect(parseNvmeSanitize(sanitizeLog('status', 2)).text).toBe(
      'a sanitize is in progress (50 %)',
    );
  });

  test('a log with two states, and any other value, says nothing', () => {
    const two = { nvme0: { sstat: { status: '(1) done', other: '(2) running' } } };
    expect(parseNvmeSanitize(two).kind).toBe('unknown');
    fc.assert(
      fc.property(fc.jsonValue(), (value) => {
        expect(parseNvmeSanitize(value).kind).toBe('unknown');
      }),
    );
  });
});
