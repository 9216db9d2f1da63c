/** Whom a person works on, by the host's record as it was before a pool began something there. */
import { timestampMs } from '@bufbuild/protobuf/wkt';
import { HostState, RunKind, RunOutcome, type store } from '@rackwright/messages';

/** "is in rescue"; undefined: nobody does. */
export function inHands(before: store.HostRecord | undefined, pool: string): string | undefined {
  const { state, inRescue, run, claim, poweredOn } = before?.host?.status ?? {};
  if (inRescue === true) return 'is in rescue';
  // Any other is off in any case.
  if (state !== HostState.PROVISIONED) return undefined;
  if (run?.kind !== RunKind.POWER || run.outcome !== RunOutcome.SUCCEEDED) return undefined;
  const isOff = poweredOn === false && run.steps.at(-1)?.name === 'power.off';
  const [askedAt, claimedAt] = [run.startTime, claim?.at];
  if (!isOff || claim?.by !== pool || askedAt === undefined || claimedAt === undefined) {
    return undefined;
  }
  const isSaidToPool = timestampMs(askedAt) >= timestampMs(claimedAt);
  const isPerson = /^(user|token|oidc):/.test(run.requestedBy);
  return isSaidToPool && isPerson ? `was switched off by ${run.requestedBy}` : undefined;
}
