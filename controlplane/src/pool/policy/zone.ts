/**
 * Wall time in a zone of the IANA database, and back. Pure: the zone's rules are Node's own.
 *
 * A wall time that a clock change skips stands for a moment after the change: half an hour into the
 * skipped time means half an hour after the change. A wall time that occurs twice stands for the
 * first occurrence.
 */

const dayMs = 86_400_000;

/** A wall time as if it were UTC, milliseconds: only for computing with days and hours. */
export type WallMs = number;

const formats = new Map<string, Intl.DateTimeFormat>();
/** The most zones with a cached format; there are a few hundred. */
const formatsMax = 1_000;

/** Whether the zone is known; "" is UTC. */
export function isZone(zone: string): boolean {
  try {
    formatOf(zone);
    return true;
  } catch {
    // `Intl` throws a RangeError for a zone that it does not know.
    return false;
  }
}

/** The wall time in the zone. */
export function wallOf(zone: string, ms: number): WallMs {
  const parts = new Map<string, number>();
  for (const { type, value } of formatOf(zone).formatToParts(ms)) parts.set(type, Number(value));
  const part = (type: string) => parts.get(type) ?? 0;
  const day = daysSinceEpoch(part('year'), part('month'), part('day'));
  const seconds = part('hour') * 3_600 + part('minute') * 60 + part('second');
  return day * dayMs + seconds * 1_000 + (((ms % 1_000) + 1_000) % 1_000);
}

/** Returns the moments of the wall times of a day (counted from 1970-01-01) in the zone. */
export function momentsOf(zone: string, day: number): (wall: WallMs) => number {
  const offset = offsetsAround(zone, day);
  return (wall) => {
    // No zone changes twice within two days, or differs more than a day from UTC.
    const before = wall - offset(wall - dayMs);
    const after = wall - offset(wall + dayMs);
    const fitting = [before, after].filter((ms) => ms + offset(ms) === wall);
    return fitting.length > 0 ? Math.min(...fitting) : before;
  };
}

type OffsetAt = (ms: number) => number;

const offsets = new Map<string, OffsetAt>();
/** The most days with cached offsets. */
const offsetsMax = 2_000;

/**
 * The zone's offset from UTC, from a day before to a day after that day. To compute a moment's wall
 * time is slow, and a window may open at each minute. So it is computed only for whole days, and,
 * where two of them differ, for the moment of the change.
 */
function offsetsAround(zone: string, day: number): OffsetAt {
  const key = `${zone}/${day}`;
  const known = offsets.get(key);
  if (known !== undefined) return known;
  const ask = (ms: number) => wallOf(zone, ms) - ms;
  const firstMs = (day - 1) * dayMs;
  const first = ask(firstMs);
  const changes: { readonly fromMs: number; readonly offset: number }[] = [];
  let before = first;
  for (const fromMs of [firstMs, firstMs + dayMs, firstMs + 2 * dayMs]) {
    const after = ask(fromMs + dayMs);
    if (after === before) continue;
    let [low, high] = [fromMs, fromMs + dayMs];
    while (high - low > 1) {
      const middle = Math.floor((low + high) / 2);
      if (ask(middle) === before) low = middle;
      else high = middle;
    }
    changes.push({ fromMs: high, offset: after });
    before = after;
  }
  const found: OffsetAt = (ms) => changes.findLast(({ fromMs }) => fromMs <= ms)?.offset ?? first;
  if (offsets.size >= offsetsMax) offsets.clear();
  offsets.set(key, found);
  return found;
}

/** Days from 1970-01-01 to a day of the Gregorian calendar. */
export function daysSinceEpoch(year: number, month: number, day: number): number {
  // Years begin in March, so that the leap day comes last.
  const y = month <= 2 ? year - 1 : year;
  const era = Math.floor(y / 400);
  const ofEra = y - era * 400;
  const ofYear = Math.floor((153 * (month + (month > 2 ? -3 : 9)) + 2) / 5) + day - 1;
  const days = ofEra * 365 + Math.floor(ofEra / 4) - Math.floor(ofEra / 100) + ofYear;
  return era * 146_097 + days - 719_468;
}

/** The calendar day this many days after 1970-01-01, with its day of the week (0: Sunday). */
export function dateOf(days: number) {
  const shifted = days + 719_468;
  const era = Math.floor(shifted / 146_097);
  const ofEra = shifted - era * 146_097;
  const year = Math.floor(
    (ofEra - Math.floor(ofEra / 1_460) + Math.floor(ofEra / 36_524) - Math.floor(ofEra / 146_096)) /
      365,
  );
  const ofYear = ofEra - (365 * year + Math.floor(year / 4) - Math.floor(year / 100));
  const shiftedMonth = Math.floor((5 * ofYear + 2) / 153);
  return {
    day: ofYear - Math.floor((153 * shiftedMonth + 2) / 5) + 1,
    month: shiftedMonth < 10 ? shiftedMonth + 3 : shiftedMonth - 9,
    weekday: (((days + 4) % 7) + 7) % 7,
  };
}

function formatOf(zone: string): Intl.DateTimeFormat {
  const known = formats.get(zone);
  if (known !== undefined) return known;
  const made = new Intl.DateTimeFormat('en-US', {
    timeZone: zone === '' ? 'UTC' : zone,
    calendar: 'gregory',
    hourCycle: 'h23',
    year: 'numeric',
    month: 'numeric',
    day: 'numeric',
    hour: 'numeric',
    minute: 'numeric',
    second: 'numeric',
  });
  if (formats.size < formatsMax) formats.set(zone, made);
  return made;
}
