/**
 * Whose a host is. A person's claim says that somebody uses it, and its goal leaves it alone. A
 * pool's says which pool puts images on it; that it is proved, clean and ready stays the matter of
 * its goal, with the goal's pauses and bounds. Pure.
 */
import { toJson } from '@bufbuild/protobuf';
import { TimestampSchema } from '@bufbuild/protobuf/wkt';
import type { Claim, HostStatus } from '@rackwright/messages';

/** Whether it is a pool that asks. */
export function isPool(actor: string): boolean {
  return actor.startsWith('pools/');
}

/** The claim for which the goal leaves the host alone; undefined: it leads the host. */
export function claimOfUse({ claim }: Pick<HostStatus, 'claim'>): Claim | undefined {
  return claim === undefined || isPool(claim.by) ? undefined : claim;
}

/** Who claims the host, and what would end it. */
export function claimedText(claim: Claim): string {
  const reason = claim.reason === '' ? '' : ` (${claim.reason})`;
  const since = claim.at === undefined ? 'an unknown time' : toJson(TimestampSchema, claim.at);
  return `claimed by ${claim.by} since ${since}${reason}; ${endOfClaim(claim)}`;
}

/** A pool takes back what it selects: giving up its claim for it would not last. */
export function endOfClaim({ by }: Claim): string {
  return isPool(by)
    ? `take it out of what ${by} selects first, and it gives the host up`
    : 'it must be unclaimed first';
}
