import { create } from '@bufbuild/protobuf';
import { durationFromMs } from '@bufbuild/protobuf/wkt';
import { type RolloutWindow, RolloutWindowSchema } from '@rackwright/messages';
import { expect, test, vi } from 'vitest';
import { opening, windowProblems } from './windows.ts';
import { momentsOf, wallOf } from './zone.ts';

const hourMs = 3_600_000;
const dayMs = 24 * hourMs;
const quarterMs = hourMs / 4;

function windowOf(cron: string, hours: number, timeZone = ''): RolloutWindow {
  return create(RolloutWindowSchema, {
    ...{ cron, timeZone },
    duration: durationFromMs(hours * hourMs),
  });
}

/** Every opening of the window, in steps of a quarter of an hour. */
function starts(window: RolloutWindow, fromMs: number, toMs: number): string[] {
  const found: string[] = [];
  let before = opening([window], fromMs - quarterMs).isOpen;
  for (let ms = fromMs; ms < toMs; ms += quarterMs) {
    const { isOpen } = opening([window], ms);
    if (isOpen && !before) found.push(new Date(ms).toISOString().slice(0, 16));
    before = isOpen;
  }
  return found;
}

test('a window is open from its start for its duration, and says when that changes', () => {
  const nights = windowOf('30 2 * * 6', 2);
  const saturday = Date.UTC(2026, 10, 21, 2, 30);
  expect(opening([nights], saturday - 1)).toEqual({ isOpen: false, untilMs: saturday });
  expect(opening([nights], saturday)).toEqual({ isOpen: true, untilMs: saturday + 2 * hourMs });
  expect(opening([nights], saturday + 2 * hourMs - 1).isOpen).toBe(true);
  const next = saturday + 7 * dayMs;
  expect(opening([nights], saturday + 2 * hourMs)).toEqual({ isOpen: false, untilMs: next });
});

test('a rollout without windows may begin at any time; with several, while one is open', () => {
  expect(opening([], 0).isOpen).toBe(true);
  const both = [windowOf('0 1 * * *', 1), windowOf('0 5 * * *', 1)];
  const day = Date.UTC(2026, 0, 5);
  const isOpenAt = (hour: number) => opening(both, day + hour * hourMs).isOpen;
  expect([0.5, 1.5, 3, 5.5, 7].map(isOpenAt)).toEqual([false, true, false, true, false]);
});

test('garm-R23: a start that summer time leaves out comes right after the change, once', () => {
  const berlin = windowOf('30 2 * * *', 1, 'Europe/Berlin');
  const from = Date.UTC(2026, 2, 28);
  expect(starts(berlin, from, from + 3 * dayMs)).toEqual([
    '2026-03-28T01:30',
    '2026-03-29T01:30',
    '2026-03-30T00:30',
  ]);
});

test('garm-R23: a start that winter time brings twice opens the first time only', () => {
  const berlin = windowOf('30 2 * * *', 0.5, 'Europe/Berlin');
  const from = Date.UTC(2026, 9, 24);
  expect(starts(berlin, from, from + 3 * dayMs)).toEqual([
    '2026-10-24T00:30',
    '2026-10-25T00:30',
    '2026-10-26T01:30',
  ]);
});

test('a window of a day far to the east or west begins on the day of its zone', () => {
  const kiritimati = windowOf('0 0 1 1 *', 1, 'Pacific/Kiritimati');
  const { untilMs } = opening([kiritimati], Date.UTC(2026, 5, 1));
  expect(untilMs).toBe(Date.UTC(2026, 11, 31, 10));
  const honolulu = windowOf('0 0 1 1 *', 1, 'Pacific/Honolulu');
  expect(opening([honolulu], Date.UTC(2026, 5, 1)).untilMs).toBe(Date.UTC(2027, 0, 1, 10));
});

test('a window on 29 February waits for a year that has it', () => {
  const { untilMs } = opening([windowOf('0 0 29 2 *', 1)], Date.UTC(2026, 0, 1));
  expect(untilMs).toBe(Date.UTC(2028, 1, 29));
});

test('lists, ranges, steps and Sunday as 7 are read as cron reads them', () => {
  const day = Date.UTC(2026, 10, 22);
  expect(starts(windowOf('0 1-3,22/1 * * 7', 0.25), day, day + dayMs)).toEqual([
    ...['2026-11-22T01:00', '2026-11-22T02:00', '2026-11-22T03:00'],
    ...['2026-11-22T22:00', '2026-11-22T23:00'],
  ]);
  // When both days are given, either is enough.
  const either = windowOf('0 0 23 * 0', 1);
  expect(starts(either, day, day + 2 * dayMs)).toEqual(['2026-11-22T00:00', '2026-11-23T00:00']);
});

test('a wrong window is refused by its field', () => {
  const fields = (window: RolloutWindow) => windowProblems(window).map(({ field }) => field);
  expect(fields(windowOf('0 2 * * 6', 2, 'Europe/Berlin'))).toEqual([]);
  expect(fields(windowOf('0 2 * *', 2))).toEqual(['cron']);
  for (const cron of ['60 2 * * *', '0 24 * * *', '0 2 0 * *', '0 2 * * 8', '5-1 2 * * *']) {
    expect(fields(windowOf(cron, 2))).toEqual(['cron']);
  }
  expect(fields(windowOf('0 0 31 4 *', 2))).toEqual(['cron']);
  expect(fields(windowOf('0 2 * * *', 0, 'Mars/Olympus'))).toEqual(['duration', 'time_zone']);
});

test('the moments of a day are those at which a clock there shows its times', () => {
  const days: readonly (readonly [zone: string, year: number, month: number, day: number])[] = [
    ['Europe/Berlin', 2026, 2, 29],
    ['Europe/Berlin', 2026, 9, 25],
    ['Europe/Berlin', 2026, 5, 1],
    ['Australia/Lord_Howe', 2026, 3, 5],
    ['Australia/Lord_Howe', 2026, 9, 4],
    ['Pacific/Apia', 2011, 11, 30],
    ['America/St_Johns', 2026, 2, 8],
    ['', 2026, 0, 1],
  ];
  for (const [zone, year, month, date] of days) {
    const midnight = Date.UTC(year, month, date);
    for (const day of [midnight - dayMs, midnight, midnight + dayMs]) {
      const momentOf = momentsOf(zone, day / dayMs);
      // Which moments have which wall time, computed one by one.
      const shows = Map.groupBy(
        Array.from({ length: 3 * 96 }, (_, n) => day - dayMs + n * quarterMs),
        (ms) => wallOf(zone, ms),
      );
      for (let wall = day; wall < day + dayMs; wall += quarterMs) {
        const moment = momentOf(wall);
        const [first] = shows.get(wall) ?? [];
        if (first === undefined) expect(wallOf(zone, moment)).toBeGreaterThan(wall);
        else expect([zone, wall, moment]).toEqual([zone, wall, first]);
      }
    }
  }
});

test('windows that open at each minute cost no more questions to the zone than rare ones', () => {
  const windows = Array.from({ length: 10 }, (_, n) => {
    return windowOf('* * * 2 *', 1, n % 2 === 0 ? 'Europe/Vienna' : 'Asia/Tokyo');
  });
  const asked = vi.spyOn(Intl.DateTimeFormat.prototype, 'formatToParts');
  // Closed, with the change to summer time ahead; open; and on the day of a change.
  for (const ms of [Date.UTC(2026, 10, 1), Date.UTC(2026, 1, 3), Date.UTC(2026, 2, 29)]) {
    for (let look = 0; look < 5; look++) opening(windows, ms + look);
  }
  expect(asked.mock.calls.length).toBeLessThan(1_000);
  asked.mockRestore();
});
