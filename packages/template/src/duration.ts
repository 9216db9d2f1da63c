/** Times as "90s", "5m", "2h". */

const unitSeconds = { s: 1, m: 60, h: 3_600 } as const;

/** Seconds of such a text; undefined for anything else. */
export function secondsOf(text: string): number | undefined {
  const found = /^(\d{1,9})([smh])$/.exec(text);
  if (found?.[1] === undefined) return undefined;
  return Number(found[1]) * unitSeconds[found[2] as keyof typeof unitSeconds];
}

/** "2h" of 7200. */
export function durationText(seconds: number): string {
  if (seconds % 3_600 === 0) return `${seconds / 3_600}h`;
  return seconds % 60 === 0 ? `${seconds / 60}m` : `${seconds}s`;
}

/** The problem of a time between 1 s and so many seconds; undefined when it is fine. */
export function durationProblem(text: string, secondsMax: number): string | undefined {
  const seconds = secondsOf(text);
  if (seconds === undefined) return 'must be a time as "90s", "5m" or "2h"';
  if (seconds >= 1 && seconds <= secondsMax) return undefined;
  return `must be from 1s to ${durationText(secondsMax)}`;
}
