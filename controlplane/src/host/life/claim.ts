/**
 * The owner of a host. A person's claim means that the host is in use, and its goal leaves it
 * unchanged. A pool's claim says which pool deploys images on it; the goal still proves it, cleans
 * it and makes it ready, with the goal's pauses and bounds. Pure.
 */
import { toJson } from '@bufbuild/protobuf';
import { TimestampSchema } from '@bufbuild/protobuf/wkt';
import { type Claim, type HostStatus, isPoolClaim } from '@rackwright/messages';

/** The claim for which the goal leaves the host unchanged; undefined: the goal leads the host. */
export function claimOfUse({ claim }: Pick<HostStatus, 'claim'>): Claim | undefined {
  return claim === undefined || isPoolClaim(claim) ? undefined : claim;
}

/** Who claims the host, and what would end the claim. */
export function claimedText(claim: Claim): string {
  const reason = claim.reason === '' ? '' : ` (${claim.reason})`;
  const since = claim.at === undefined ? 'an unknown time' : toJson(TimestampSchema, claim.at);
  return `claimed by ${claim.by} since ${since}${reason}; ${endOfClaim(claim)}`;
}

/** A pool claims the hosts that it selects again: to end its claim would not last. */
export function endOfClaim(claim: Claim): string {
  return isPoolClaim(claim)
    ? `take it out of what ${claim.by} selects first, and it gives the host up`
    : 'it must be unclaimed first';
}
