/**
 * Takes in what was observed of a host without an order: power, netboots, inventories, runners.
 * Facts never change what is wanted; but a host that may have been used is not clean any more.
 */
import type { agent } from '@rackwright/api';
import { failStep } from './engine.ts';
import { operationParts } from './operation.ts';
import { stepFailure } from './step-failure.ts';
import { factsWith, isEngineStep } from './steps.ts';
import { activeRun, causedBy, currentStep, now, type Turn } from './turn.ts';
import { hasOrdered, observePower, suspectUse } from './use.ts';

/** Observed facts: never desired state, progress or errors. */
export function foldFacts(turn: Turn, observations: agent.Observations | undefined): void {
  if (observations === undefined) return;
  if (observations.poweredOn !== undefined) observePower(turn, observations.poweredOn);
  if (observations.runnerReady !== undefined) foldRunnerReady(turn, observations.runnerReady);
  if (observations.inventory !== undefined) {
    const facts = factsWith(turn, { inventory: observations.inventory });
    turn.effects.push({ kind: 'facts', facts });
  }
  if (observations.unexpectedNetboot !== undefined) {
    foldNetboot(turn, observations.unexpectedNetboot);
  }
}

function foldRunnerReady(turn: Turn, ready: agent.RunnerReady): void {
  const run = activeRun(turn.status);
  const parts = operationParts(turn.host.uid, ready.bootOperationId);
  if (run === undefined || parts === undefined || parts.runNumber !== run.number) return;
  turn.record.runner = ready;
  // What is listed is what runs: neither knows a runner's step under an engine step's name.
  const runnerSteps = ready.steps.filter(({ name }) => !isEngineStep(name));
  if (runnerSteps.length === 0) return;
  const facts = factsWith(turn, {
    runnerSteps,
    runnerVersion: ready.runnerVersion,
    runnerStepsAt: now(turn),
  });
  const same =
    turn.context.facts.runnerVersion === ready.runnerVersion &&
    turn.context.facts.runnerSteps.length === runnerSteps.length;
  if (!same) turn.effects.push({ kind: 'facts', facts });
}

/**
 * A netboot that nobody ordered. Of this host: data may have come onto its disks. Of another host
 * instead of this one: the BMCs are crossed, and the run ends before anything is written.
 */
function foldNetboot(turn: Turn, netboot: agent.UnexpectedNetboot): void {
  const { status, host } = turn;
  if (netboot.hostUid === host.uid) {
    if (!hasOrdered(turn, 'power.bootRunner'))
      suspectUse(turn, `netbooted from ${netboot.mac} without an order`);
    return;
  }
  const run = activeRun(status);
  const step = run === undefined ? undefined : currentStep(run);
  if (run === undefined || step === undefined) return;
  const ordered = operationParts(host.uid, netboot.insteadOfOperationId);
  if (ordered?.runNumber !== run.number || step.name !== 'runner.await') return;
  const message =
    `the BMC at ${turn.spec.bmc?.address ?? '?'} switched on ${netboot.hostName} ` +
    `(${netboot.mac}) instead of ${host.name}: the two BMC addresses are crossed`;
  causedBy(turn, 'agent', message);
  failStep(turn, run, step, stepFailure('identityMismatch', message));
}
