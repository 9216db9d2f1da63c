/**
 * Records observations of a host without an order: power, netboots, inventories, runners. Facts
 * never change the desired state; but a host that may have been used is no longer clean.
 */
import { create, equals } from '@bufbuild/protobuf';
import type { Timestamp } from '@bufbuild/protobuf/wkt';
import { actors, agent } from '@rackwright/messages';
import { foldHardware } from '../bmc/hardware.ts';
import { foldBmcHealth } from '../bmc/health.ts';
import { isByHand } from '../bmc/protocols.ts';
import { isBootOrdered, observePower, suspectUse } from '../erasure/use.ts';
import { foldBootTrace } from '../operation/boot-traces.ts';
import { bootOperationId } from '../operation/boots.ts';
import { operationParts } from '../operation/operation.ts';
import { activeRun, currentStep, type Pass, recordCause, timeNow } from '../pass/pass.ts';
import { messageMax, truncate } from '../pass/step-failure.ts';
import { engineSteps } from '../pass/step-names.ts';
import { dropSystemPower } from '../power/pending-power.ts';
import { failStep } from '../run/engine.ts';
import { offered } from '../run/known-steps.ts';
import { replan } from '../run/replan.ts';

/** Observed facts: never desired state, progress or errors. `readTime` is the agent's clock. */
export function foldFacts(
  pass: Pass,
  observations: agent.Observations | undefined,
  readTime?: Timestamp,
): void {
  if (observations === undefined) return;
  if (observations.bmcHealth !== undefined) foldBmcHealth(pass, observations.bmcHealth, readTime);
  if (observations.hardwareHealth !== undefined) foldHardware(pass, observations.hardwareHealth);
  if (observations.poweredOn !== undefined) foldPower(pass, observations.poweredOn);
  if (observations.runnerReady !== undefined) foldRunnerReady(pass, observations.runnerReady);
  if (observations.bootTrace !== undefined) foldBootTrace(pass, observations.bootTrace);
  if (observations.runnerRefused !== undefined) foldRefusal(pass, observations.runnerRefused);
  if (observations.inventory !== undefined) {
    pass.effects.push({ kind: 'facts', facts: { inventory: observations.inventory } });
  }
  if (observations.unexpectedNetboot !== undefined) {
    foldNetboot(pass, observations.unexpectedNetboot);
  }
}

/** A change is in the timeline, whoever caused it. */
function foldPower(pass: Pass, on: boolean): void {
  const before = pass.status.poweredOn;
  const epoch = pass.status.useEpoch;
  observePower(pass, on);
  const wasSwitchedOn = before === false && on && activeRun(pass.status) === undefined;
  if (wasSwitchedOn) dropSystemPower(pass, 'somebody has switched it on meanwhile');
  if (before === on || epoch !== pass.status.useEpoch) return;
  recordCause(pass, actors.agent, `seen ${on ? 'on' : 'off'}`);
}

function foldRunnerReady(pass: Pass, ready: agent.RunnerReady): void {
  const run = activeRun(pass.status);
  const parts = operationParts(pass.host.uid, ready.bootOperationId);
  if (run === undefined || parts === undefined || parts.runNumber !== run.number) return;
  if (ready.bootOperationId !== bootOperationId(pass, run)) return;
  pass.record.runner = ready;
  pass.record.inRunner = true;
  if (isByHand(pass.spec)) {
    pass.status.poweredOn = true;
    delete pass.status.powerWord;
  }
  // The list matches what runs: both leave out a runner's step with the name of an engine step.
  const runnerSteps = offered(ready.steps);
  if (runnerSteps.length === 0) return;
  const { runnerVersion } = ready;
  const known = pass.snapshot.facts;
  if (known.runnerVersion !== runnerVersion || !sameSteps(known.runnerSteps, runnerSteps)) {
    const facts = { runnerSteps, runnerVersion, runnerStepsAt: timeNow(pass) };
    pass.effects.push({ kind: 'facts', facts });
  }
  const failure = replan(pass, run, ready);
  const step = currentStep(run);
  if (failure !== undefined && step !== undefined) failStep(pass, run, step, failure);
}

/** Its run keeps waiting, until the boot's deadline or an accepted runner. */
function foldRefusal(pass: Pass, { bootOperationId: boot, message }: agent.RunnerRefused): void {
  const run = activeRun(pass.status);
  const isWaiting = run !== undefined && currentStep(run)?.name === engineSteps.awaitRunner;
  if (!isWaiting || boot !== bootOperationId(pass, run)) return;
  const shown = { bootOperationId: boot, message: truncate(message, messageMax) };
  pass.record.runnerRefused = create(agent.RunnerRefusedSchema, shown);
}

type Steps = readonly agent.StepDescription[];

function sameSteps(a: Steps, b: Steps): boolean {
  return (
    a.length === b.length &&
    a.every((step, index) => {
      const other = b[index];
      return other !== undefined && equals(agent.StepDescriptionSchema, step, other);
    })
  );
}

/**
 * A netboot without an order. Anybody on the provisioning network can claim one, so it counts only
 * together with other evidence: the host's BMC reports that it is on, or a runner ran there. A
 * netboot of another host instead of this one is shown as a possible cause while this one is
 * awaited.
 */
function foldNetboot(pass: Pass, netboot: agent.UnexpectedNetboot): void {
  const { status, host } = pass;
  if (netboot.hostUid === host.uid) {
    // When the BMC reports that the host is off, the agent polls it at once. Without a BMC there is
    // no other source: a host that may have been used is cleaned again.
    const wasOn = status.poweredOn === true || netboot.seenInBand || isByHand(pass.spec);
    if (!wasOn || isBootOrdered(pass)) return;
    suspectUse(pass, `netbooted from ${netboot.mac} without an order`);
    return;
  }
  const run = activeRun(status);
  const step = run === undefined ? undefined : currentStep(run);
  if (run === undefined || step === undefined) return;
  const ordered = operationParts(host.uid, netboot.insteadOfOperationId);
  if (ordered?.runNumber !== run.number || step.name !== engineSteps.awaitRunner) return;
  const { mac, hostName, insteadOfOperationId } = netboot;
  const shown = {
    mac: truncate(mac, nameMax),
    hostName: truncate(hostName, nameMax),
    insteadOfOperationId,
  };
  pass.record.netbootInstead = create(agent.UnexpectedNetbootSchema, shown);
}

/** The longest stored name of an unknown host, in characters. */
const nameMax = 128;
