/** Times for people. */
import { fromJson } from '@bufbuild/protobuf';
import {
  type Timestamp,
  TimestampSchema,
  timestampDate,
  timestampMs,
} from '@bufbuild/protobuf/wkt';
import type { Clock } from '@rackwright/platform';

const units = [
  ['d', 86_400_000],
  ['h', 3_600_000],
  ['m', 60_000],
  ['s', 1_000],
] as const;

/** "3m ago", or "in 3m"; '' when unset. */
export function ago(clock: Clock, time: Timestamp | undefined): string {
  if (time === undefined) return '';
  const distanceMs = clock.nowMs() - timestampMs(time);
  return distanceMs < 0 ? `in ${duration(-distanceMs)}` : `${duration(distanceMs)} ago`;
}

/** The two largest units of a duration: "1h 5m". */
export function duration(durationMs: number): string {
  const parts: string[] = [];
  let restMs = durationMs;
  for (const [name, unitMs] of units) {
    const count = Math.floor(restMs / unitMs);
    restMs -= count * unitMs;
    if (count > 0 || (name === 's' && parts.length === 0)) parts.push(`${count}${name}`);
  }
  return parts.slice(0, 2).join(' ');
}

/** "2026-11-20T07:00:00Z"; '' when unset. */
export function instant(time: Timestamp | undefined): string {
  return time === undefined
    ? ''
    : timestampDate(time)
        .toISOString()
        .replace(/\.\d+Z$/, 'Z');
}

/** A time as "2026-11-20T07:00:00Z" or with an offset; undefined for anything else. */
export function parseInstant(text: string): Timestamp | undefined {
  try {
    return fromJson(TimestampSchema, text);
  } catch {
    // The caller names the forms of a time.
    return undefined;
  }
}

/** "90s", "30m", "2h", "3d" in milliseconds; undefined for anything else. */
export function parseDuration(text: string): number | undefined {
  const [, count, name] = /^(\d{1,6})([smhd])$/.exec(text) ?? [];
  const unit = units.find(([each]) => each === name);
  return unit === undefined ? undefined : Number(count) * unit[1];
}
