/**
 * The guard of a restored store (DESIGN §10): the effect of a store with lost data on its hosts,
 * until a person has accepted the loss and the agent knows that. Pure.
 *
 * Invariants:
 * G1 Until then nothing is ordered, resent or cancelled; running work goes on and its results are
 *    recorded.
 * G2 Afterwards no number is used that the lost history may have used, and no host is available
 *    because of older knowledge. Earlier certificates no longer apply to its disks, and the disks
 *    are not read again.
 * G3 Afterwards no goal, no pool and no deletion of the backup automatically boots, switches off,
 *    erases or rewrites a host that may have been taken into use in the lost history. First a
 *    person has to check and send `retry` (or request the clean, the release, the image or the
 *    deletion).
 */

import {
  actors,
  type agent,
  DeletionMode,
  type Hold,
  HoldKind,
  HostState,
  noRevision,
  type Run,
  RunKind,
  RunOutcome,
  type store,
} from '@rackwright/messages';
import { dropUsed, isRereadingDue } from '../erasure/power-cycle.ts';
import { operationParts } from '../operation/operation.ts';
import { activeRun, type Pass, type PassView, recordCause, timeNow } from '../pass/pass.ts';
import { stepFailure } from '../pass/step-failure.ts';
import { isSystemHold, keepSystemHolds } from '../pass/system-holds.ts';
import { move } from '../pass/transitions.ts';
import type { HostEvent, HostSnapshot } from '../pass/types.ts';
import { endRun } from '../run/engine.ts';

/** Whether a hold is the guard's own: only the acceptance of the store lifts it. */
export function isRestoredHold(hold: Hold): boolean {
  return isSystemHold(hold, HoldKind.RESTORED);
}

/**
 * The context in which a host is guarded. After a person has accepted the loss, the agent
 * reconnects before it reports which operations of the lost history it still has. Until that report
 * nothing is ordered for the host (G1).
 */
export function guardedSnapshot(
  { host }: store.HostRecord,
  { kind }: HostEvent,
  snapshot: HostSnapshot,
): HostSnapshot {
  const isHeld = host?.status?.holds.some(isRestoredHold) === true;
  if (!isHeld || snapshot.restored !== undefined) return snapshot;
  if (kind === 'hello' || hasNoAgent(snapshot)) return snapshot;
  const restored =
    'the loss is accepted; the agent of the rack reports next which operations it still has';
  return { ...snapshot, restored };
}

/**
 * Holds every host of a rack whose store has lost data, until the loss has been accepted (G1).
 * `pass.context` is guarded: without a loss in it, the agent has said what it has, or is gone.
 */
export function guardRestored(pass: Pass, event: HostEvent): void {
  const { status, snapshot } = pass;
  const held = status.holds.some(isRestoredHold);
  if (snapshot.restored !== undefined) {
    passLostRuns(pass);
    if (held) return;
    keepSystemHolds(pass, HoldKind.RESTORED, [{ text: snapshot.restored }]);
    recordCause(pass, actors.system, 'held: the store was restored');
  } else if (held) {
    acceptLoss(pass, event.kind === 'hello' ? event.listed : []);
  }
}

/** No agent could report what it has seen. */
export function hasNoAgent({ agentRegistered, agentRevoked }: HostSnapshot): boolean {
  return !agentRegistered || agentRevoked === true;
}

/**
 * G2, for runs that the agent no longer lists. Each run has used at least one revision. So the lost
 * runs have used at most as many numbers as revisions were lost, also when some numbers were
 * skipped before. While the host is held, no run begins. What the agent has seen may become known
 * only after the acceptance, with its Hello.
 */
function passLostRuns({ snapshot, record }: Pass): void {
  const { lostRevisions = noRevision } = snapshot;
  if (lostRevisions <= record.lostRevisionsPassed) return;
  record.runCount += lostRevisions - record.lostRevisionsPassed;
  record.lostRevisionsPassed = lostRevisions;
}

/**
 * G2. The agent's remaining work of the lost history is cancelled, and its results do not count.
 */
function acceptLoss(pass: Pass, listed: readonly agent.JournalledOperation[]): void {
  const { status, record, host } = pass;
  passLostRuns(pass);
  keepSystemHolds(pass, HoldKind.RESTORED, []);
  for (const { operationId } of listed) {
    const parts = operationParts(host.uid, operationId);
    if (parts !== undefined && parts.runNumber > record.runCount) record.runCount = parts.runNumber;
  }
  delete record.pendingPower;
  recordCause(pass, actors.system, 'what the restored store had lost was accepted');
  const run = activeRun(status);
  if (run !== undefined && !isRemoval(pass, run)) endLost(pass, run);
  // Its history since is unknown: data that was written then is not erased data that has returned.
  if (status.state === HostState.AVAILABLE || countsAsErased(pass)) move(status, 'used');
  dropUsed(pass);
  if (mayBeInUse.has(status.state)) requireReview(pass);
}

/** Whether nothing is left but to forget the host, or a person has forced that. */
function isRemoval({ record, status }: PassView, { kind }: Pick<Run, 'kind'>): boolean {
  const isForced = status.deletion?.mode === DeletionMode.FORCE;
  return kind === RunKind.DELETE && (record.forgetting || isForced);
}

/** Whether anything was erased in this use, regardless of the outcome of the run. */
function countsAsErased(pass: PassView): boolean {
  const { record, status } = pass;
  return (
    isRereadingDue(pass) || record.certified.some(({ useEpoch }) => useEpoch === status.useEpoch)
  );
}

/** The use in the backup may have ended since, and the host may have a new user. */
const mayBeInUse: ReadonlySet<HostState> = new Set([
  HostState.NEW,
  HostState.MANAGEABLE,
  HostState.PROVISIONED,
]);

/** G3. A user who got the host in the lost history still has it: only a person can know. */
function requireReview(pass: Pass): void {
  pass.record.lookFirstSince = timeNow(pass);
  delete pass.status.afterFailure?.runnerUntil;
}

function endLost(pass: Pass, run: Run): void {
  const operationRecord = pass.record.operation;
  if (operationRecord?.operation !== undefined && operationRecord.sentTo !== undefined) {
    const { id } = operationRecord.operation;
    pass.effects.push({ kind: 'cancel', operationId: id, cancelId: `${id}/cancel` });
  }
  const message = 'the store was restored to an older state while it was under way';
  endRun(pass, run, RunOutcome.FAILED, stepFailure('restored', message));
}
