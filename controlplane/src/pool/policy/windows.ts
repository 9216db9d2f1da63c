/**
 * When a rollout may take hosts out: windows with cron start times in a time zone. Pure.
 *
 * Must not: end any work; a window limits only the begin.
 */
import { durationMs } from '@bufbuild/protobuf/wkt';
import type { RolloutWindow } from '@rackwright/messages';
import { invalid, type Read, valid } from '@rackwright/platform';
import { dateOf, isZone, momentsOf, wallOf } from './zone.ts';

const dayMs = 86_400_000;
const durationMsMax = 7 * dayMs;
const durationMsMin = 60_000;
/** How far ahead an opening is searched: 29 February comes at least every eight years. */
const aheadMaxDays = 3_000;
const cronCharsMax = 200;
const zoneCharsShown = 80;

interface Cron {
  readonly minutes: readonly number[];
  readonly hours: readonly number[];
  readonly days: readonly number[];
  readonly months: readonly number[];
  readonly weekdays: readonly number[];
  /** A day matches when day or day of the week matches; otherwise both have to match. */
  readonly isEither: boolean;
}

const ranges = [
  { name: 'minute', from: 0, to: 59 },
  { name: 'hour', from: 0, to: 23 },
  { name: 'day of the month', from: 1, to: 31 },
  { name: 'month', from: 1, to: 12 },
  // 7 is Sunday, too.
  { name: 'day of the week', from: 0, to: 7 },
] as const;

/** What is wrong with a window, by field; empty when it is valid. */
export function windowProblems({ cron, duration, timeZone }: RolloutWindow) {
  const problems: { readonly field: string; readonly description: string }[] = [];
  const read = readCron(cron);
  if (read.kind === 'bad') problems.push({ field: 'cron', description: read.problem });
  else if (isNever(read.value)) {
    problems.push({ field: 'cron', description: 'names a day that never comes' });
  }
  const ms = duration === undefined ? 0 : durationMs(duration);
  if (ms < durationMsMin || ms > durationMsMax) {
    problems.push({ field: 'duration', description: 'must be from 1 minute to 7 days' });
  }
  if (!isZone(timeZone)) {
    const shown = JSON.stringify(timeZone.slice(0, zoneCharsShown));
    const right = 'give a zone of the IANA database, as "Europe/Berlin"; empty means UTC';
    problems.push({ field: 'time_zone', description: `is ${shown}; ${right}` });
  }
  return problems;
}

export interface Opening {
  readonly isOpen: boolean;
  /** When to check again: its end, or the next opening; undefined: there is none. */
  readonly untilMs: number | undefined;
}

/** Whether one of the windows is open; without any window it always is. */
export function opening(windows: readonly RolloutWindow[], nowMs: number): Opening {
  if (windows.length === 0) return { isOpen: true, untilMs: undefined };
  const ends = windows.flatMap((window) => endOf(window, nowMs) ?? []);
  if (ends.length > 0) return { isOpen: true, untilMs: Math.max(...ends) };
  const starts = windows.flatMap((window) => nextStart(window, nowMs) ?? []);
  return { isOpen: false, untilMs: starts.length > 0 ? Math.min(...starts) : undefined };
}

/** The end of the window that is open now; undefined when it is closed. */
function endOf({ cron, duration, timeZone }: RolloutWindow, nowMs: number): number | undefined {
  const read = readCron(cron);
  if (read.kind === 'bad' || duration === undefined) return undefined;
  const lastsMs = durationMs(duration);
  const today = Math.floor(wallOf(timeZone, nowMs) / dayMs);
  // One more day on either side: a daylight saving change moves a start by hours.
  const earliest = today - Math.ceil(lastsMs / dayMs) - 1;
  for (let day = today + 1; day >= earliest; day--) {
    if (!fitsDay(read.value, day)) continue;
    const last = startsOf(read.value, timeZone, day).findLast((ms) => ms <= nowMs);
    if (last !== undefined) return nowMs < last + lastsMs ? last + lastsMs : undefined;
  }
  return undefined;
}

function nextStart({ cron, timeZone }: RolloutWindow, nowMs: number): number | undefined {
  const read = readCron(cron);
  if (read.kind === 'bad') return undefined;
  const today = Math.floor(wallOf(timeZone, nowMs) / dayMs);
  for (let day = today - 1; day <= today + aheadMaxDays; day++) {
    if (!fitsDay(read.value, day)) continue;
    const first = startsOf(read.value, timeZone, day).find((ms) => ms > nowMs);
    if (first !== undefined) return first;
  }
  return undefined;
}

/** All starts of a day, in order. */
function startsOf({ hours, minutes }: Cron, zone: string, day: number): number[] {
  const walls = hours.flatMap((hour) =>
    minutes.map((minute) => day * dayMs + hour * 3_600_000 + minute * 60_000),
  );
  return walls.map(momentsOf(zone, day)).toSorted((a, b) => a - b);
}

function fitsDay({ days, months, weekdays, isEither }: Cron, days1970: number): boolean {
  const { day, month, weekday } = dateOf(days1970);
  if (!months.includes(month)) return false;
  const [byDay, byWeekday] = [days.includes(day), weekdays.includes(weekday)];
  return isEither ? byDay || byWeekday : byDay && byWeekday;
}

function isNever({ days, months, isEither }: Cron): boolean {
  if (isEither) return false;
  const longest = (month: number) => (month === 2 ? 29 : [4, 6, 9, 11].includes(month) ? 30 : 31);
  return !months.some((month) => days.some((day) => day <= longest(month)));
}

/** The parsed text, or what is wrong with it. */
function readCron(text: string): Read<Cron> {
  const fields = text.trim().split(/\s+/);
  if (text.length > cronCharsMax || fields.length !== ranges.length) {
    return invalid(
      'must have five parts: minute, hour, day of month, month, day of week ("0 2 * * 6")',
    );
  }
  const lists: number[][] = [];
  for (const [index, { name, from, to }] of ranges.entries()) {
    const list = readField(fields[index] ?? '', from, to);
    if (list === undefined) {
      const right = `it can be *, numbers from ${from} to ${to}, ranges and steps`;
      return invalid(`has "${fields[index]}" as ${name}; ${right}`);
    }
    lists.push(list);
  }
  const [minutes = [], hours = [], days = [], months = [], weekdays = []] = lists;
  return valid({
    ...{ minutes, hours, days, months },
    weekdays: weekdays.map((day) => day % 7),
    isEither: !fields[2]?.startsWith('*') && !fields[4]?.startsWith('*'),
  });
}

function readField(text: string, from: number, to: number): number[] | undefined {
  const found = new Set<number>();
  for (const part of text.split(',')) {
    const [, first, last, step] = /^(\*|\d{1,2})(?:-(\d{1,2}))?(?:\/(\d{1,2}))?$/.exec(part) ?? [];
    if (first === undefined || (first === '*' && last !== undefined)) return undefined;
    const low = first === '*' ? from : Number(first);
    const isOpenEnded = first === '*' || (last === undefined && step !== undefined);
    const high = isOpenEnded ? to : Number(last ?? first);
    const by = Number(step ?? 1);
    if (low < from || high > to || low > high || by < 1) return undefined;
    for (let each = low; each <= high; each += by) found.add(each);
  }
  return [...found].toSorted((a, b) => a - b);
}
