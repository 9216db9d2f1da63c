/**
 * Takes in what was observed of a host without an order: power, netboots, inventories, runners.
 * Facts never change what is wanted; but a host that may have been used is not clean any more.
 */
import { create, equals } from '@bufbuild/protobuf';
import type { Timestamp } from '@bufbuild/protobuf/wkt';
import { agent } from '@rackwright/messages';
import { foldHardware } from '../bmc/hardware.ts';
import { foldBmcHealth } from '../bmc/health.ts';
import { isByHand } from '../bmc/protocols.ts';
import { isBootOrdered, observePower, suspectUse } from '../erasure/use.ts';
import { foldBootTrace } from '../operation/boot-traces.ts';
import { bootOperationId } from '../operation/boots.ts';
import { operationParts } from '../operation/operation.ts';
import { dropSystemPower } from '../power/pending-power.ts';
import { failStep } from '../run/engine.ts';
import { offered } from '../run/known-steps.ts';
import { replan } from '../run/replan.ts';
import { cut, messageMax } from '../turn/step-failure.ts';
import { engineSteps } from '../turn/step-names.ts';
import { activeRun, causedBy, currentStep, now, type Turn } from '../turn/turn.ts';

/** Observed facts: never desired state, progress or errors. `toldAt` is the agent's clock. */
export function foldFacts(
  turn: Turn,
  observations: agent.Observations | undefined,
  toldAt?: Timestamp,
): void {
  if (observations === undefined) return;
  if (observations.bmcHealth !== undefined) foldBmcHealth(turn, observations.bmcHealth, toldAt);
  if (observations.hardwareHealth !== undefined) foldHardware(turn, observations.hardwareHealth);
  if (observations.poweredOn !== undefined) foldPower(turn, observations.poweredOn);
  if (observations.runnerReady !== undefined) foldRunnerReady(turn, observations.runnerReady);
  if (observations.bootTrace !== undefined) foldBootTrace(turn, observations.bootTrace);
  if (observations.runnerRefused !== undefined) foldRefusal(turn, observations.runnerRefused);
  if (observations.inventory !== undefined) {
    turn.effects.push({ kind: 'facts', facts: { inventory: observations.inventory } });
  }
  if (observations.unexpectedNetboot !== undefined) {
    foldNetboot(turn, observations.unexpectedNetboot);
  }
}

/** What changed is told in the timeline, whoever pressed the button. */
function foldPower(turn: Turn, on: boolean): void {
  const before = turn.status.poweredOn;
  const epoch = turn.status.useEpoch;
  observePower(turn, on);
  const wasSwitchedOn = before === false && on && activeRun(turn.status) === undefined;
  if (wasSwitchedOn) dropSystemPower(turn, 'somebody has switched it on meanwhile');
  if (before === on || epoch !== turn.status.useEpoch) return;
  causedBy(turn, 'agent', `seen ${on ? 'on' : 'off'}`);
}

function foldRunnerReady(turn: Turn, ready: agent.RunnerReady): void {
  const run = activeRun(turn.status);
  const parts = operationParts(turn.host.uid, ready.bootOperationId);
  if (run === undefined || parts === undefined || parts.runNumber !== run.number) return;
  if (ready.bootOperationId !== bootOperationId(turn, run)) return;
  turn.record.runner = ready;
  turn.record.inRunner = true;
  if (isByHand(turn.spec)) {
    turn.status.poweredOn = true;
    delete turn.status.powerWord;
  }
  // What is listed is what runs: neither knows a runner's step under an engine step's name.
  const runnerSteps = offered(ready.steps);
  if (runnerSteps.length === 0) return;
  const { runnerVersion } = ready;
  const known = turn.context.facts;
  if (known.runnerVersion !== runnerVersion || !sameSteps(known.runnerSteps, runnerSteps)) {
    const facts = { runnerSteps, runnerVersion, runnerStepsAt: now(turn) };
    turn.effects.push({ kind: 'facts', facts });
  }
  const failure = replan(turn, run, ready);
  const step = currentStep(run);
  if (failure !== undefined && step !== undefined) failStep(turn, run, step, failure);
}

/** Its run goes on waiting: the boot's deadline ends that, or a runner that is taken. */
function foldRefusal(turn: Turn, { bootOperationId: boot, message }: agent.RunnerRefused): void {
  const run = activeRun(turn.status);
  const isWaiting = run !== undefined && currentStep(run)?.name === engineSteps.awaitRunner;
  if (!isWaiting || boot !== bootOperationId(turn, run)) return;
  const said = { bootOperationId: boot, message: cut(message, messageMax) };
  turn.record.runnerRefused = create(agent.RunnerRefusedSchema, said);
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
 * A netboot that nobody ordered. Anybody on the network that machines boot from can claim one, so
 * it says something only together with what others say. Of this host: its BMC says that it is on,
 * or a runner ran there.
 * Of another host instead of this one: it is told as a possible cause while this one is waited for.
 */
function foldNetboot(turn: Turn, netboot: agent.UnexpectedNetboot): void {
  const { status, host } = turn;
  if (netboot.hostUid === host.uid) {
    // One whose BMC says that it is off is looked at by its agent at once.
    // Without a BMC nobody else could say so: a host that may have been used is cleaned again.
    const wasOn = status.poweredOn === true || netboot.seenInBand || isByHand(turn.spec);
    if (!wasOn || isBootOrdered(turn)) return;
    suspectUse(turn, `netbooted from ${netboot.mac} without an order`);
    return;
  }
  const run = activeRun(status);
  const step = run === undefined ? undefined : currentStep(run);
  if (run === undefined || step === undefined) return;
  const ordered = operationParts(host.uid, netboot.insteadOfOperationId);
  if (ordered?.runNumber !== run.number || step.name !== engineSteps.awaitRunner) return;
  const { mac, hostName, insteadOfOperationId } = netboot;
  const said = { mac: cut(mac, nameMax), hostName: cut(hostName, nameMax), insteadOfOperationId };
  turn.record.netbootInstead = create(agent.UnexpectedNetbootSchema, said);
}

/** Longest name of a stranger that is kept, in characters. */
const nameMax = 128;
