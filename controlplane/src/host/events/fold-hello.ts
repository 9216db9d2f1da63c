/**
 * R10: folds in what an agent's Hello reports of a host. The journal is compared with the
 * operation: an operation that has not begun may be sent again, everything else goes on.
 */
import { actors, agent, HoldKind, type OperationId } from '@rackwright/messages';
import { bootOperationId } from '../operation/boots.ts';
import { operationParts, resend, wasSentTo } from '../operation/operation.ts';
import { activeRun, currentStep, hasPassed, type Pass, recordCause } from '../pass/pass.ts';
import { engineSteps } from '../pass/step-names.ts';
import { keepSystemHolds } from '../pass/system-holds.ts';
import { interruptBoot, retryStep } from '../run/engine.ts';
import { checkAgain } from './fold-retry.ts';

const { JOURNALLED } = agent.JournalledOperation_State;

/** The agent's journal against the operation of this host. */
export function foldHello(
  pass: Pass,
  journal: agent.Journal,
  listed: readonly agent.JournalledOperation[],
  grants?: readonly OperationId[],
): void {
  foldOperation(pass, journal, listed);
  if (grants !== undefined) foldGrants(pass, grants);
  holdUnknownWork(pass, listed);
  if (pass.record.forgetting) pass.effects.push({ kind: 'forget' });
}

/** A grant that the agent has lost cannot serve the boot of its host. */
function foldGrants(pass: Pass, grants: readonly OperationId[]): void {
  const run = activeRun(pass.status);
  const step = run === undefined ? undefined : currentStep(run);
  if (run === undefined || step?.name !== engineSteps.awaitRunner) return;
  if (grants.includes(bootOperationId(pass, run))) return;
  interruptBoot(pass, run, step, 'the agent has lost the grant of this boot');
  recordCause(pass, actors.agent, 'the grant of the boot was lost; the host is booted again');
}

/**
 * An operation that has not begun and whose time is over gets a new attempt, because the wait was
 * not its fault. One that has not begun and was aborted never begins. Everything else goes on under
 * its id.
 */
function foldOperation(
  pass: Pass,
  journal: agent.Journal,
  listed: readonly agent.JournalledOperation[],
): void {
  const operationRecord = pass.record.operation;
  const run = activeRun(pass.status);
  const step = run === undefined ? undefined : currentStep(run);
  if (operationRecord?.operation === undefined || run === undefined || step === undefined) return;
  const known = listed.find(({ operationId }) => operationId === operationRecord.operation?.id);
  const notBegun = known === undefined || known.state === JOURNALLED;
  if (!wasSentTo(operationRecord, journal) || !notBegun) resend(pass, journal);
  else if (run.abort !== undefined && known === undefined) delete operationRecord.sentTo;
  else if (!operationRecord.queued && hasPassed(pass, step.deadline)) {
    retryStep(pass, run, step, checkAgain(pass), {});
  } else resend(pass, journal);
}

/** Work that was not ordered from here, holds the host while the agent lists it. */
function holdUnknownWork(pass: Pass, listed: readonly agent.JournalledOperation[]): void {
  const { host, record } = pass;
  const unknown = listed.filter(({ operationId }) => {
    const parts = operationParts(host.uid, operationId);
    return parts !== undefined && parts.runNumber > record.runCount;
  });
  const causes = unknown.map(({ operationId }) => {
    return { text: `the agent has ${operationId}`, operationId };
  });
  if (!keepSystemHolds(pass, HoldKind.UNKNOWN_WORK, causes)) return;
  recordCause(pass, actors.agent, 'the agent works on what was never ordered from here');
}

/** The agent has dropped all work of this host. */
export function foldForgotten(pass: Pass): void {
  pass.record.forgetting = false;
}
