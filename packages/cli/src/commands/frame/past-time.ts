/** Flags that name a time in the past: an instant, or how long ago. */
import { type Timestamp, timestampFromMs } from '@bufbuild/protobuf/wkt';
import type { Clock } from '@rackwright/platform';
import { UsageError } from '../../failure.ts';
import { parseDuration, parseInstant } from '../../output/time.ts';

/** A flag that takes such a time. */
export function pastFlag(brief: string) {
  return { kind: 'parsed', parse: String, optional: true, brief, placeholder: 'time' } as const;
}

/** "2026-01-31T12:00:00Z", or "2h" for two hours ago. Throws `UsageError`. */
export function pastTime(clock: Clock, flag: string, text: string): Timestamp {
  const agoMs = parseDuration(text);
  const time = agoMs === undefined ? parseInstant(text) : timestampFromMs(clock.nowMs() - agoMs);
  if (time !== undefined) return time;
  throw new UsageError(
    `${flag} is "${text}"; it must be a time as 2026-01-31T12:00:00Z, or how long ago as 90s, ` +
      '30m, 2h or 3d',
  );
}

/** The fields of a time range; an absent bound is left out. */
export function rangeOf(
  clock: Clock,
  { since, until }: { readonly since?: string; readonly until?: string },
): { readonly startTime?: Timestamp; readonly endTime?: Timestamp } {
  return {
    ...(since === undefined ? {} : { startTime: pastTime(clock, '--since', since) }),
    ...(until === undefined ? {} : { endTime: pastTime(clock, '--until', until) }),
  };
}

/** `--since`, `--until` and `--limit`. */
export const rangeFlags = {
  since: pastFlag('From then on: 2026-01-31T12:00:00Z, or 2h for two hours ago'),
  until: pastFlag('Before then'),
  limit: {
    kind: 'parsed',
    parse: parseLimit,
    default: '100',
    brief: 'At most so many, the newest',
    placeholder: 'number',
  },
} as const;

export interface RangeFlags {
  readonly since?: string;
  readonly until?: string;
  readonly limit: number;
}

function parseLimit(text: string): number {
  if (/^\d{1,6}$/.test(text) && Number(text) > 0) return Number(text);
  throw new SyntaxError(`"${text}" is not allowed; it must be a whole number, 1 to 999999`);
}

/** Pages until there are `limit` items or no more; pages may be empty and still go on. */
export async function pagesUntil<P extends { readonly nextPageToken: string }, T>(
  limit: number,
  fetch: (pageToken: string, pageSize: number) => Promise<P>,
  itemsOf: (page: P) => readonly T[],
): Promise<{ readonly items: T[]; readonly more: boolean }> {
  const items: T[] = [];
  let pageToken = '';
  do {
    const page = await fetch(pageToken, Math.min(limit - items.length, pageSizeMax));
    items.push(...itemsOf(page));
    pageToken = page.nextPageToken;
  } while (pageToken !== '' && items.length < limit);
  return { items, more: pageToken !== '' };
}

const pageSizeMax = 1_000;
