/**
 * R10: folds in what an agent's Hello says of a host. What its journal lists, and what it lists no
 * more, is held against the slot: what has not begun may go anew, everything else goes on.
 */
import { agent, HoldKind } from '@rackwright/messages';
import { bootOperationId } from '../operation/boots.ts';
import { operationParts, resend, wentTo } from '../operation/operation.ts';
import { bootAgain, retryStep } from '../run/engine.ts';
import { engineSteps } from '../turn/step-names.ts';
import { keepSystemHolds } from '../turn/system-holds.ts';
import { activeRun, causedBy, currentStep, hasPassed, type Turn } from '../turn/turn.ts';
import { checkAgain } from './fold.ts';

const { JOURNALLED } = agent.JournalledOperation_State;

/** The agent's journal against the slot of this host. */
export function foldHello(
  turn: Turn,
  journal: agent.Journal,
  listed: readonly agent.JournalledOperation[],
  grants?: readonly string[],
): void {
  foldSlot(turn, journal, listed);
  if (grants !== undefined) foldGrants(turn, grants);
  holdUnknownWork(turn, listed);
  if (turn.record.forgetting) turn.effects.push({ kind: 'forget' });
}

/** A host that boots under a grant that its agent has lost boots into nothing. */
function foldGrants(turn: Turn, grants: readonly string[]): void {
  const run = activeRun(turn.status);
  const step = run === undefined ? undefined : currentStep(run);
  if (run === undefined || step?.name !== engineSteps.awaitRunner) return;
  if (grants.includes(bootOperationId(turn, run))) return;
  bootAgain(turn, run, step, 'the agent has lost the grant of this boot');
  causedBy(turn, 'agent', 'the grant of the boot was lost; the host is booted again');
}

/**
 * What has not begun and whose time is over gets a new attempt, for waiting was not its fault; what
 * has not begun and was aborted never begins. Everything else goes on under its id.
 */
function foldSlot(
  turn: Turn,
  journal: agent.Journal,
  listed: readonly agent.JournalledOperation[],
): void {
  const slot = turn.record.operation;
  const run = activeRun(turn.status);
  const step = run === undefined ? undefined : currentStep(run);
  if (slot?.operation === undefined || run === undefined || step === undefined) return;
  const known = listed.find(({ operationId }) => operationId === slot.operation?.id);
  const notBegun = known === undefined || known.state === JOURNALLED;
  if (!wentTo(slot, journal) || !notBegun) resend(turn, journal);
  else if (run.abort !== undefined && known === undefined) delete slot.sentTo;
  else if (!slot.queued && hasPassed(turn, step.deadline)) {
    retryStep(turn, run, step, checkAgain(turn), {});
  } else resend(turn, journal);
}

/** Work that was never ordered from here holds the host, for as long as the agent lists it. */
function holdUnknownWork(turn: Turn, listed: readonly agent.JournalledOperation[]): void {
  const { host, record } = turn;
  const unknown = listed.filter(({ operationId }) => {
    const parts = operationParts(host.uid, operationId);
    return parts !== undefined && parts.runNumber > record.runCount;
  });
  const texts = unknown.map(({ operationId }) => `the agent has ${operationId}`);
  if (!keepSystemHolds(turn, HoldKind.UNKNOWN_WORK, texts)) return;
  causedBy(turn, 'agent', 'the agent works on what was never ordered from here');
}

/** The agent has dropped everything of this host. */
export function foldForgotten(turn: Turn): void {
  turn.record.forgetting = false;
}
