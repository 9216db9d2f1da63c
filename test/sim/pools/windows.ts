/**
 * Windows of pools in a simulated rack, each with when it is open in universal time: known from the
 * calendar, and computed by nobody. Worlds with pools begin in winter, or shortly before a clock is
 * changed.
 */

const minuteMs = 60_000;
const hourMs = 60 * minuteMs;

/** "30 2 * * *" of Berlin opens right after the change, at 01:00 of universal time. */
const springMs = Date.UTC(2026, 2, 29, 0, 54);
/** The second 02:30 of that night in Berlin: the first one was an hour ago, and opens alone. */
const autumnMs = Date.UTC(2026, 9, 25, 1, 24);
const winterMs = Date.UTC(2026, 0, 1);

/** What clocks show when the world of a seed begins; 0: one without pools. */
export function wallStartOf(seed: number): number {
  return [winterMs, springMs, autumnMs][seed === 0 ? 0 : seed % 3] ?? winterMs;
}

interface Window {
  readonly cron: string;
  readonly minutes: number;
  readonly timeZone: string;
  /** Whether it is open, by the universal time. */
  readonly isOpen: (ms: number) => boolean;
}

/** From each of these moments on. */
function from(starts: readonly number[], minutes: number): Window['isOpen'] {
  return (ms) => starts.some((opens) => ms >= opens && ms < opens + minutes * minuteMs);
}

export const windows: readonly [Window, ...Window[]] = [
  {
    // Kathmandu is 5 hours and 45 minutes ahead, in summer and winter.
    ...{ cron: '*/6 * * * *', minutes: 3, timeZone: 'Asia/Kathmandu' },
    isOpen: (ms) => Math.floor(ms / minuteMs) % 6 >= 3,
  },
  {
    ...{ cron: '30 2 * * *', minutes: 8, timeZone: 'Europe/Berlin' },
    isOpen: from([Date.UTC(2026, 2, 29, 1), Date.UTC(2026, 0, 1, 1, 30)], 8),
  },
  {
    // The evening before, as its calendar has it.
    ...{ cron: '30 22 * * *', minutes: 10, timeZone: 'America/Sao_Paulo' },
    isOpen: (ms) => (ms - 90 * minuteMs) % (24 * hourMs) < 10 * minuteMs,
  },
  {
    ...{ cron: '5 * 1 1 *', minutes: 20, timeZone: '' },
    isOpen: (ms) =>
      ms >= winterMs && ms < winterMs + 24 * hourMs && (ms - 5 * minuteMs) % hourMs < 20 * minuteMs,
  },
];

/** As a pool names it. */
export function wordsOf({ cron, minutes, timeZone }: Window) {
  return { cron, duration: { seconds: BigInt(minutes * 60) }, timeZone };
}

/** Whether one of a pool's windows is open; one that nobody here has written is an error. */
export function isOpenAt(
  asked: readonly { readonly cron: string; readonly timeZone: string }[],
  ms: number,
): boolean {
  if (asked.length === 0) return true;
  return asked.some(({ cron, timeZone }) => {
    const found = windows.find((each) => each.cron === cron && each.timeZone === timeZone);
    if (found === undefined) throw new Error(`nobody here writes the window ${cron} ${timeZone}`);
    return found.isOpen(ms);
  });
}
