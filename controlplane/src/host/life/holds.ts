/** Holds with an expiry: they end at their time, whatever else happens to the host. */
import { actors, HoldScope } from '@rackwright/messages';
import { hasPassed, type Pass, recordCause } from '../pass/pass.ts';

/** Removes every expired hold, and says so in the timeline. */
export function endHolds(pass: Pass): void {
  const { status } = pass;
  const over = status.holds.filter((hold) => hasPassed(pass, hold.until));
  if (over.length === 0) return;
  status.holds = status.holds.filter((hold) => !over.includes(hold));
  for (const { scope, by, reason } of over) {
    recordCause(
      pass,
      actors.system,
      `the ${scopeName(scope)} hold of ${by} ended at its time: ${reason}`,
    );
  }
}

/** "work", "power", "release". */
export function scopeName(scope: HoldScope): string {
  switch (scope) {
    case HoldScope.WORK:
      return 'work';
    case HoldScope.POWER:
      return 'power';
    case HoldScope.RELEASE:
      return 'release';
    default:
      return 'unknown';
  }
}
