/**
 * The guard of a restored store (DESIGN §10): what a store that has lost something does to its
 * hosts, until a person has accepted the loss and the agent knows it. Pure.
 *
 * Invariants:
 * G1 Until then nothing is ordered, resent or taken back; what is running goes on and its results
 *    are taken in.
 * G2 Afterwards nothing goes on under a number that the lost stretch may have used, and no host is
 *    available on what was known before it. What was certified before says nothing of its disks
 *    any more, and is not read again.
 * G3 Afterwards no goal and no pool boots, erases or rewrites a host by itself that may have been
 *    taken into use in the lost stretch, until a person has looked and says `retry` (or asks for
 *    the clean, the release or the image).
 */

import {
  type agent,
  type Hold,
  HoldKind,
  HostState,
  noRevision,
  type Run,
  RunKind,
  RunOutcome,
} from '@rackwright/messages';
import { dropUsed, isDue } from '../erasure/power-cycle.ts';
import { operationParts } from '../operation/operation.ts';
import { activeRun, causedBy, now, type Pass } from '../pass/pass.ts';
import { stepFailure } from '../pass/step-failure.ts';
import { isSystemHold, keepSystemHolds } from '../pass/system-holds.ts';
import { move } from '../pass/transitions.ts';
import type { HostContext, HostEvent } from '../pass/types.ts';
import { endRun } from '../run/engine.ts';

/** Whether a hold is the guard's own: only the acceptance of the store lifts it. */
export function isRestoredHold(hold: Hold): boolean {
  return isSystemHold(hold, HoldKind.RESTORED);
}

/** Holds every host of a rack whose store has lost something, until that has been accepted (G1). */
export function guardRestored(pass: Pass, event: HostEvent): void {
  const { status, context } = pass;
  const held = status.holds.some(isRestoredHold);
  if (context.restored !== undefined) {
    passLostRuns(pass);
    if (held) return;
    keepSystemHolds(pass, HoldKind.RESTORED, [context.restored]);
    causedBy(pass, 'system', 'held: the store was restored');
  } else if (held && (event.kind === 'hello' || hasNoAgent(context))) {
    acceptLoss(pass, event.kind === 'hello' ? event.listed : []);
  }
}

/** Nobody is there who could say what it has seen. */
function hasNoAgent({ agentRegistered, agentRevoked }: HostContext): boolean {
  return !agentRegistered || agentRevoked === true;
}

/**
 * G2, for runs that the agent lists no more: each has taken a revision at least, so that beyond as
 * many numbers as revisions are lost no number has been used, also where some were passed over
 * before. While it is held, no run begins. What the agent has seen may come to be known only after
 * the acceptance, with the Hello that tells it.
 */
function passLostRuns({ context, record }: Pass): void {
  const { lostRevisions = noRevision } = context;
  if (lostRevisions <= record.lostRevisionsPassed) return;
  record.runCount += lostRevisions - record.lostRevisionsPassed;
  record.lostRevisionsPassed = lostRevisions;
}

/** G2. What the agent still does of the lost stretch is taken back; its results are nobody's. */
function acceptLoss(pass: Pass, listed: readonly agent.JournalledOperation[]): void {
  const { status, record, host } = pass;
  passLostRuns(pass);
  keepSystemHolds(pass, HoldKind.RESTORED, []);
  for (const { operationId } of listed) {
    const parts = operationParts(host.uid, operationId);
    if (parts !== undefined && parts.runNumber > record.runCount) record.runCount = parts.runNumber;
  }
  delete record.pendingPower;
  causedBy(pass, 'system', 'what the restored store had lost was accepted');
  const run = activeRun(status);
  if (run !== undefined && run.kind !== RunKind.DELETE) endLost(pass, run);
  // Nobody knows what happened to it since: what somebody wrote then is no content that came back.
  if (status.state === HostState.AVAILABLE || countsAsErased(pass)) move(status, 'used');
  dropUsed(pass);
  if (mayBeInUse.has(status.state)) lookFirst(pass);
}

/** Whether anything was erased in this use, whatever became of the run that did it. */
function countsAsErased(pass: Pass): boolean {
  const { record, status } = pass;
  return isDue(pass) || record.certified.some(({ useEpoch }) => useEpoch === status.useEpoch);
}

/** What ran there in the backup may have been given back since, and the host to somebody else. */
const mayBeInUse: ReadonlySet<HostState> = new Set([
  HostState.NEW,
  HostState.MANAGEABLE,
  HostState.PROVISIONED,
]);

/** G3. Whoever was given the host in the lost stretch still has it: only a person can know. */
function lookFirst(pass: Pass): void {
  pass.record.lookFirstSince = now(pass);
  delete pass.status.afterFailure?.runnerUntil;
}

function endLost(pass: Pass, run: Run): void {
  const slot = pass.record.operation;
  if (slot?.operation !== undefined && slot.sentTo !== undefined) {
    const { id } = slot.operation;
    pass.effects.push({ kind: 'cancel', operationId: id, cancelId: `${id}/cancel` });
  }
  const message = 'the store was restored to an older state while it was under way';
  endRun(pass, run, RunOutcome.FAILED, stepFailure('restored', message));
}
