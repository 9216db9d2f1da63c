/**
 * Failures of hosts in a pool's rollout. They are kept until the desired image or its deployment
 * changes, or the host is healthy after all. Pure; changes a draft.
 */
import { create } from '@bufbuild/protobuf';
import { timestampFromMs } from '@bufbuild/protobuf/wkt';
import {
  type HostUid,
  noRun,
  type RolloutSlot,
  RolloutSlotState,
  store as wire,
} from '@rackwright/messages';
import { failureBasis, isOfOther } from '../facts/basis.ts';
import type { PoolDraft } from '../facts/draft-types.ts';
import { isHealthyOn, type SeenHost } from '../facts/seen.ts';
import { wantedBy } from '../facts/target.ts';
import { ledgerEntryOf, writtenBy } from '../facts/written-run.ts';
import { digestInImage } from '../policy/image-name.ts';
import { inShort, truncate } from './slot-text.ts';

/**
 * A failure before the host has left its image is retried after this pause, and later ones after
 * longer pauses: each attempt takes a host in service out for a while.
 */
const retryPauseMs = 5 * 60_000;
const retryDelayMsMax = 24 * 3_600_000;
/** After this many attempts a host counts as failed, and nothing waits for it until it is tried. */
export const attemptsMany = 3;
/** The newest failures have longer texts: a pool's record must have room for one of most hosts. */
const newestFailures = 50;
const failureCharsMax = 500;
const oldMessageCharsMax = 120;

const { GATE, PROVING } = RolloutSlotState;

interface Failing {
  readonly message: string;
  readonly counted: boolean;
}

/** A host's attempt is over; one that did not count is repeated after a pause. */
export function fail(draft: PoolDraft, slot: RolloutSlot, { message, counted }: Failing): void {
  const { record, nowMs, hosts, registries } = draft;
  const digest = digestInImage(slot.image);
  const host = hosts.get(slot.hostUid);
  const before = record.failures.find((each) => each.hostUid === slot.hostUid);
  const attempts = (before?.digest === digest ? before.attempts : 0) + 1;
  const isGate = slot.state === GATE;
  const pauseMs = Math.min(retryDelayMsMax, retryPauseMs * (isGate ? 1 : 2 ** (attempts - 1)));
  // Only a run that has written the complete image, and was not recorded, may still become a
  // deployment.
  const isFirst = slot.deployedTime !== undefined;
  const written = slot.state === PROVING ? (isFirst ? undefined : slot) : before;
  record.failures = record.failures.filter((each) => each.hostUid !== slot.hostUid);
  record.failures.push(
    create(wire.PoolFailureSchema, {
      ...{ host: slot.host, hostUid: slot.hostUid, digest, counted },
      message: truncate(inShort(message, slot), failureCharsMax),
      attempts: isGate ? attempts - 1 : attempts,
      time: timestampFromMs(nowMs),
      ...(host === undefined ? {} : { basis: failureBasis(record, registries)(host) }),
      ...(counted ? {} : { retryTime: timestampFromMs(nowMs + pauseMs) }),
      ...(written === undefined || written.run === 0n ? {} : writtenBy(written)),
    }),
  );
  for (const older of record.failures.slice(0, -newestFailures)) {
    older.message = truncate(older.message, oldMessageCharsMax);
  }
}

/** It is healthy on its image, and has been for long enough. */
export function forgive({ record }: PoolDraft, hostUid: HostUid): void {
  record.failures = record.failures.filter((each) => each.hostUid !== hostUid);
}

/**
 * Drops failures of another image, of a host that is healthy after all, and of settings
 * that a person has changed since.
 */
export function healFailures(draft: PoolDraft): void {
  const { record, hosts, registries } = draft;
  const members = new Set(record.members.map(({ hostUid }) => hostUid));
  const basisOf = failureBasis(record, registries);
  record.failures = record.failures.filter((failure) => {
    const host = hosts.get(failure.hostUid);
    if (host === undefined || !members.has(failure.hostUid)) return false;
    recordLateDeployment(draft, failure, host);
    if (wantedBy(record, failure.host)?.digest !== failure.digest) return mayBeLate(failure, host);
    const isWell = isHealthyOn(host, failure.digest);
    if (!isWell && !isOfOther(failure, basisOf(host))) return true;
    // The halt is decided again without it.
    if (failure.counted && failure.digest === record.halt?.digest) delete record.halt;
    return false;
  });
}

function recordLateDeployment(draft: PoolDraft, failure: wire.PoolFailure, host: SeenHost): void {
  if (failure.run === 0n || !isHealthyOn(host, digestInImage(failure.image))) return;
  draft.deployments.push(ledgerEntryOf(draft.record, failure, draft.nowMs));
  failure.run = noRun;
}

/** Kept only for the history, until the host is written again. */
function mayBeLate(failure: wire.PoolFailure, host: SeenHost): boolean {
  if (failure.run === 0n || host.digest !== digestInImage(failure.image)) return false;
  Object.assign(failure, { counted: false, attempts: 0, basis: '', retryTime: failure.time });
  return true;
}
