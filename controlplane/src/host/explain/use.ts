/**
 * Explains what people have set on a host: holds, its claim, rescue, adoption, external ownership;
 * and failures beside the goal. Pure.
 */

import {
  disksNamedBy,
  failureNameOf,
  faultOfType,
  HoldScope,
  HostState,
  RunKind,
  RunOutcome,
  type store,
} from '@rackwright/messages';
import { hardwareFaultOf, isInspectedSince } from '../erasure/hardware.ts';
import { claimOfUse } from '../life/claim.ts';
import { wantsAvailable } from '../life/goal.ts';
import { displayOf, isInRescue } from '../pass/display.ts';
import { type KnownRunKind, landings } from '../pass/transitions.ts';
import { adviceFor } from './advice.ts';
import { type ExplanationDraft, hostId } from './explanation-draft.ts';

/** A hold that prevents new work, or a power request. */
export function explainHold(record: store.HostRecord): ExplanationDraft | undefined {
  const { holds = [] } = record.host?.status ?? {};
  const work = holds.find(({ scope }) => scope === HoldScope.WORK);
  const power =
    record.pendingPower === undefined
      ? undefined
      : holds.find(({ scope }) => scope === HoldScope.POWER);
  const hold = work ?? power;
  if (hold === undefined) return undefined;
  const kept = work === undefined ? 'its power is not switched' : 'nothing new starts';
  return {
    headline: `held by ${hold.by}: ${kept}`,
    causes: [{ text: hold.reason, since: hold.since }],
    blocker: 'the hold',
    since: hold.since,
    nextAttemptTime: hold.until,
    unblock: [`once its reason is gone: rackwright host release-hold ${hostId(record)}`],
  };
}

/** Why the goal leaves a host unchanged that it could lead further. */
export function explainUse(record: store.HostRecord): ExplanationDraft | undefined {
  const status = record.host?.status;
  if (status?.state !== HostState.MANAGEABLE || !wantsAvailable(record.host?.spec))
    return undefined;
  const claim = claimOfUse(status);
  const display = displayOf(status);
  if (claim !== undefined) {
    return {
      headline: `${display}: claimed by ${claim.by}, so that its goal (available) waits`,
      causes: [{ text: claim.reason || 'no reason was given', since: claim.at }],
      blocker: 'its claim',
      since: claim.at,
      unblock: [`when it is no longer used: rackwright host unclaim ${hostId(record)}`],
    };
  }
  if (!status.inRescue) return explainHardware(record);
  return {
    headline: `${display}: booted for rescue, so that its goal (available) waits`,
    blocker: 'the person who asked for rescue',
    unblock: [
      `when all is saved that is on its disks: rackwright host retry ${hostId(record)}; ` +
        'it is then cleaned',
    ],
  };
}

/** A host without a run: its owner, its image, and failures beside its goal. */
export function explainRest(record: store.HostRecord): ExplanationDraft | undefined {
  const status = record.host?.status;
  if (status === undefined) return undefined;
  const failed = explainFailedBeside(record);
  if (failed !== undefined) return failed;
  const { claim, image } = status;
  const user = claim === undefined ? '' : `, claimed by ${claim.by}`;
  switch (status.state) {
    case HostState.EXTERNAL:
      return {
        headline:
          `${displayOf(status)}${user}: in someone else’s care; only its BMC is verified and, ` +
          'when asked, its power switched',
      };
    case HostState.PROVISIONED: {
      const content = image === '' ? 'what it was adopted with' : image;
      if (isInRescue(status)) return explainRescued(record, `${displayOf(status)}${user}`, content);
      return { headline: `${displayOf(status)}${user}: it runs ${content}; nothing waits` };
    }
    default:
      return undefined;
  }
}

/** Its image does not run: our runner does, until the person has finished. */
function explainRescued(
  record: store.HostRecord,
  display: string,
  image: string,
): ExplanationDraft {
  const id = hostId(record);
  return {
    headline: `${display}: it runs the runner, and not ${image}, until a person is done with it`,
    blocker: 'the person who asked for rescue',
    unblock: [
      `to run ${image} again: rackwright host power reset ${id}`,
      `or to put another one there: rackwright host reimage ${id} IMAGE`,
    ],
  };
}

/**
 * An inspection did not resolve the hardware change: the host is not erased until it is resolved.
 */
function explainHardware(record: store.HostRecord): ExplanationDraft | undefined {
  const status = record.host?.status;
  const fault = status === undefined ? undefined : hardwareFaultOf(status);
  if (status === undefined || fault === undefined || !isInspectedSince(status, fault)) {
    return undefined;
  }
  const id = hostId(record);
  return {
    headline: `${displayOf(status)}: its hardware is not what its spec says`,
    causes: [{ text: fault.message, since: fault.since }],
    blocker: 'a person',
    since: fault.since,
    unblock: [
      `name the interface that it boots from: rackwright host update ${id} --mac MAC`,
      `or put that interface in, then: rackwright host inspect ${id}`,
    ],
  };
}

/** Requested work beside the goal that failed: it is not retried automatically. */
function explainFailedBeside(record: store.HostRecord): ExplanationDraft | undefined {
  const { lastError, faults = [] } = record.host?.status ?? {};
  const kind = lastError?.runKind ?? RunKind.UNSPECIFIED;
  const type =
    kind in landings ? landings[kind as KnownRunKind][RunOutcome.FAILED].fault : undefined;
  const fault = type === undefined ? undefined : faultOfType(faults, type);
  const status = record.host?.status;
  if (fault === undefined || lastError === undefined || status === undefined) return undefined;
  // While the goal waits for another try, the last error may be of another run than the fault.
  const disks = status.backoff === undefined ? disksNamedBy(lastError.failure?.details) : [];
  return {
    headline: `${displayOf(status)}: ${lastError.run} failed, and nothing tries it again by itself`,
    causes: [{ text: fault.message, since: fault.since, disks }],
    since: fault.since,
    unblock: adviceFor(failureNameOf(lastError.failure?.type ?? 0), record),
  };
}
