/**
 * What a clean that ended badly leaves (DESIGN §4): the host stays in the runner for a while, so
 * that a person can look and resume; then it is switched off, and boots its old disk only for a
 * reason. Also how often it is cleaned again by itself.
 *
 * Must not: decide when the goal is tried again (`goal.ts`).
 */
import { clone, create } from '@bufbuild/protobuf';
import {
  AfterFailureSchema,
  HostState,
  type Run,
  RunKind,
  RunOutcome,
  RunSchema,
} from '@rackwright/messages';
import { isBootStep } from '../turn/step-names.ts';
import { forgetFailure, goal, later, runName, system, type Turn } from '../turn/turn.ts';

/** Applies the end of a run to what the last failed clean left. */
export function landAfterFailure(turn: Turn, run: Run): void {
  const { status, record, context } = turn;
  const { afterFailure } = status;
  if (run.kind === RunKind.CLEAN && run.outcome !== RunOutcome.SUCCEEDED) {
    record.failedRun = clone(RunSchema, run);
    status.afterFailure = create(AfterFailureSchema, {
      bootOnly: 'runner',
      run: runName(run),
      ...(mayBeInRunner(turn, run)
        ? { runnerUntil: later(turn, context.timing.runnerKeepMs) }
        : {}),
    });
  } else if (run.kind === RunKind.CLEAN) {
    status.automaticRecleans = 0;
  } else if (run.requestedBy === system && afterFailure?.runnerUntil !== undefined) {
    // Switching off has failed, which is a fault of its own: tried again, but not at once.
    afterFailure.runnerUntil = later(turn, context.timing.runnerKeepMs);
  }
  settle(turn);
  // Somebody else's, in use, or clean: what the failed clean left is over.
  if (status.state !== HostState.MANAGEABLE) forgetFailure(turn);
}

/**
 * Who was not booted into the runner is not there: what runs from its disk is not switched off.
 * Nor is what a restored store remembers so, for it may have been given to somebody since.
 */
function mayBeInRunner({ record }: Turn, { steps }: Run): boolean {
  if (record.lookFirstSince !== undefined) return false;
  const booted = steps.some(({ name, attempt }) => isBootStep(name) && attempt > 0);
  return booted || record.runner !== undefined;
}

/** A host that is off stays in no runner. */
export function settle({ status }: Turn): void {
  if (status.poweredOn === false) delete status.afterFailure?.runnerUntil;
}

/** A clean begins: what the last one left is over, and who asked for this one counts. */
export function beginClean({ status, record }: Turn, requestedBy: string): void {
  const again = status.afterFailure !== undefined && requestedBy === goal;
  status.automaticRecleans = again ? status.automaticRecleans + 1 : 0;
  delete status.afterFailure;
  delete record.failedRun;
}
