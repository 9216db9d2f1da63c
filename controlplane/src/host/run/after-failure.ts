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
import { forgetFailure, goal, later, type Pass, runName, system } from '../pass/pass.ts';
import { isBootStep } from '../pass/step-names.ts';

/** Applies the end of a run to what the last failed clean left. */
export function landAfterFailure(pass: Pass, run: Run): void {
  const { status, record, context } = pass;
  const { afterFailure } = status;
  if (run.kind === RunKind.CLEAN && run.outcome !== RunOutcome.SUCCEEDED) {
    record.failedRun = clone(RunSchema, run);
    status.afterFailure = create(AfterFailureSchema, {
      bootOnly: 'runner',
      run: runName(run),
      ...(mayBeInRunner(pass, run)
        ? { runnerUntil: later(pass, context.timing.runnerKeepMs) }
        : {}),
    });
  } else if (run.kind === RunKind.CLEAN) {
    status.automaticRecleans = 0;
  } else if (run.requestedBy === system && afterFailure?.runnerUntil !== undefined) {
    // Switching off has failed, which is a fault of its own: tried again, but not at once.
    afterFailure.runnerUntil = later(pass, context.timing.runnerKeepMs);
  }
  settle(pass);
  // Somebody else's, in use, or clean: what the failed clean left is over.
  if (status.state !== HostState.MANAGEABLE) forgetFailure(pass);
}

/**
 * Who was not booted into the runner is not there: what runs from its disk is not switched off.
 * Nor is what a restored store remembers so, for it may have been given to somebody since.
 */
function mayBeInRunner({ record }: Pass, { steps }: Run): boolean {
  if (record.lookFirstSince !== undefined) return false;
  const booted = steps.some(({ name, attempt }) => isBootStep(name) && attempt > 0);
  return booted || record.runner !== undefined;
}

/** A host that is off stays in no runner. */
export function settle({ status }: Pass): void {
  if (status.poweredOn === false) delete status.afterFailure?.runnerUntil;
}

/** A clean begins: what the last one left is over, and who asked for this one counts. */
export function beginClean({ status, record }: Pass, requestedBy: string): void {
  const again = status.afterFailure !== undefined && requestedBy === goal;
  status.automaticRecleans = again ? status.automaticRecleans + 1 : 0;
  delete status.afterFailure;
  delete record.failedRun;
}
