/**
 * The state after a failed clean (DESIGN §4): the host stays in the runner for a while, so that a
 * person can check and resume. Then it is switched off, and boots its old disk only for a reason.
 * Also counts how often it is cleaned again automatically.
 *
 * Must not: decide when the goal is retried (`goal.ts`).
 */
import { clone, create } from '@bufbuild/protobuf';
import {
  type Actor,
  AfterFailureSchema,
  actorKind,
  HostState,
  isBySystem,
  type Run,
  RunKind,
  RunOutcome,
  RunSchema,
} from '@rackwright/messages';
import { forgetFailure, type Pass, type PassView, runName, timeAfter } from '../pass/pass.ts';
import type { RunView } from '../pass/read-only.ts';
import { isBootStep } from '../pass/step-names.ts';

/** Updates the remains of the last failed clean at the end of a run. */
export function landAfterFailure(pass: Pass, run: Run): void {
  const { status, record, snapshot } = pass;
  const { afterFailure } = status;
  if (run.kind === RunKind.CLEAN && run.outcome !== RunOutcome.SUCCEEDED) {
    record.failedRun = clone(RunSchema, run);
    status.afterFailure = create(AfterFailureSchema, {
      bootOnly: 'runner',
      run: runName(run),
      ...(mayBeInRunner(pass, run)
        ? { runnerUntil: timeAfter(pass, snapshot.timing.runnerKeepMs) }
        : {}),
    });
  } else if (run.kind === RunKind.CLEAN) {
    status.automaticRecleans = 0;
  } else if (isBySystem(run.requestedBy) && afterFailure?.runnerUntil !== undefined) {
    // The power off has failed, which is a fault of its own: retried later.
    afterFailure.runnerUntil = timeAfter(pass, snapshot.timing.runnerKeepMs);
  }
  settle(pass);
  // External, in use, or clean: the remains of the failed clean are over.
  if (status.state !== HostState.MANAGEABLE) forgetFailure(pass);
}

/**
 * A host that was not booted into the runner is not in it: one that runs from its disk is not
 * switched off. Nor is a host whose state comes from a restored store, because it may have a new
 * user.
 */
function mayBeInRunner({ record }: PassView, { steps }: RunView): boolean {
  if (record.lookFirstSince !== undefined) return false;
  const booted = steps.some(({ name, attempt }) => isBootStep(name) && attempt > 0);
  return booted || record.runner !== undefined;
}

/** A host that is off is in no runner. */
export function settle({ status }: Pass): void {
  if (status.poweredOn === false) delete status.afterFailure?.runnerUntil;
}

/** A new clean ends the remains of the last one, and its requester counts from now on. */
export function beginClean({ status, record }: Pass, requestedBy: Actor): void {
  const again = status.afterFailure !== undefined && actorKind(requestedBy) === 'goal';
  status.automaticRecleans = again ? status.automaticRecleans + 1 : 0;
  delete status.afterFailure;
  delete record.failedRun;
}
