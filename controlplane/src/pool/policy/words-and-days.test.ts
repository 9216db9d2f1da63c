/** Calendar days, cron windows, and texts for the record. */
import { create } from '@bufbuild/protobuf';
import { durationFromMs } from '@bufbuild/protobuf/wkt';
import { RolloutSlotSchema, RolloutWindowSchema } from '@rackwright/messages';
import { expect, test } from 'vitest';
import { image } from '../decide/rollout.fixture.ts';
import { inShort, truncate } from '../decide/slot-text.ts';
import { opening, windowProblems } from './windows.ts';
import { dateOf, daysSinceEpoch } from './zone.ts';

const dayMs = 86_400_000;

test('days are those of the Gregorian calendar, through centuries', () => {
  const from = Date.UTC(1599, 0, 1) / dayMs;
  for (let days = from; days < from + 365 * 1_300; days += 13) {
    const date = new Date(days * dayMs);
    const [day, month, weekday] = [date.getUTCDate(), date.getUTCMonth() + 1, date.getUTCDay()];
    expect(dateOf(days)).toEqual({ day, month, weekday });
    expect(daysSinceEpoch(date.getUTCFullYear(), month, day)).toBe(days);
  }
});

test('the ends of Februaries and years are where they are', () => {
  for (const year of [1900, 1999, 2000, 2024, 2026, 2100, 2400]) {
    for (const month of [0, 1, 2, 11]) {
      for (const day of [1, 28, 29, 31]) {
        const days = Date.UTC(year, month, day) / dayMs;
        const date = new Date(days * dayMs);
        expect(dateOf(days)).toMatchObject({
          ...{ day: date.getUTCDate(), month: date.getUTCMonth() + 1 },
        });
      }
    }
  }
});

/** The times of one day at which a window of one minute opens, "HH:MM". */
function openings(cron: string, day: number): string[] {
  const window = create(RolloutWindowSchema, { cron, duration: durationFromMs(60_000) });
  const found: string[] = [];
  for (let ms = day; ; ) {
    const { isOpen, untilMs = Number.POSITIVE_INFINITY } = opening([window], ms);
    if (isOpen) found.push(new Date(ms).toISOString().slice(11, 16));
    if (untilMs >= day + dayMs) return found;
    ms = untilMs;
  }
}

test.each([
  ['10-12 14 * * *', ['14:10', '14:11', '14:12']],
  ['*/20 0 * * *', ['00:00', '00:20', '00:40']],
  ['5/25 23 * * *', ['23:05', '23:30', '23:55']],
  ['0 6-10/2 * * *', ['06:00', '08:00', '10:00']],
  ['59 23 31 12 *', []],
  ['30 4 22-24 11 *', ['04:30']],
  ['30 4 * 10-11 0', ['04:30']],
  ['30 4 */7 * 0', ['04:30']],
  ['30 4 */2 * 0', []],
])('%s opens at these times of a Sunday, 22 November', (cron, times) => {
  expect(openings(cron, Date.UTC(2026, 10, 22))).toEqual(times);
});

const problems = (cron: string, ms = 60_000, timeZone = '') => {
  const window = { cron, duration: durationFromMs(ms), timeZone };
  return windowProblems(create(RolloutWindowSchema, window)).map(({ description }) => description);
};

test.each(['1-2-3', '*-5', '1/0', 'a', '', '1,', '100', '1/100', '*/', '-5'])(
  'minutes as "%s" are refused with what is right',
  (minutes) => {
    const [first = ''] = problems(`${minutes} 2 * * *`);
    expect(first).toMatch(
      /^(has ".*" as minute; it can be \*, numbers from 0 to 59|must have five)/,
    );
  },
);

test('a window lasts from a minute to a week, and no text is read that is too long', () => {
  expect(problems('0 2 * * *', 59_999)).toHaveLength(1);
  expect(problems('0 2 * * *', 60_000)).toEqual([]);
  expect(problems('0 2 * * *', 7 * dayMs)).toEqual([]);
  expect(problems('0 2 * * *', 7 * dayMs + 1)).toHaveLength(1);
  expect(problems(` ${'0,'.repeat(94)}0 2 * * * `)).toEqual([]);
  expect(problems(`${'0,'.repeat(97)}0 2 * * *`)).toHaveLength(1);
  expect(problems('0 0 30 2 *')).toEqual(['names a day that never comes']);
  expect(problems('0 0 31 4,6,9,11 *')).toEqual(['names a day that never comes']);
  for (const cron of ['0 0 29 2 *', '0 0 31 4,5 *', '0 0 30 4 *', '0 0 30 2 1']) {
    expect(problems(cron)).toEqual([]);
  }
});

test('texts are cut where they are longer than a record keeps', () => {
  expect(truncate('x'.repeat(240))).toBe('x'.repeat(240));
  expect(truncate('x'.repeat(241))).toBe(`${'x'.repeat(239)}…`);
  expect(truncate('abc', 3)).toBe('abc');
  expect(truncate('abcd', 3)).toBe('ab…');
});

test('words on a host leave out its image and most of a digest', () => {
  const slot = create(RolloutSlotSchema, { image: image('B') });
  expect(inShort(`${image('B')} is not ${image('A')}`, slot)).toBe(
    'its image is not registry.example/os@sha256:414141414141…',
  );
  expect(inShort('a text', create(RolloutSlotSchema))).toBe('a text');
});
