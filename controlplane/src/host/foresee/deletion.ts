/**
 * Predicts the runs of a deletion, one after the other, each as if the one before had succeeded: on
 * a copy of the record, by the functions that delete hosts. Pure.
 */
import {
  actors,
  type HostSpec,
  HostState,
  type Run,
  RunKind,
  RunOutcome,
  RunPhase,
  type RunStep,
  StepState,
} from '@rackwright/messages';
import { endpointText } from '../bmc/endpoint.ts';
import { recordRemains, requestDeletion, startStage } from '../deletion/deletion.ts';
import { applyRunEnd } from '../events/landing.ts';
import { type Pass, type PassView, runKindName, timeNow } from '../pass/pass.ts';
import type { DeepReadonly, RunView } from '../pass/read-only.ts';
import { engineSteps, switchesOn } from '../pass/step-names.ts';
import type { HostRequest } from '../pass/types.ts';
import { isForced } from '../run/forced.ts';

/** Release, clean and removal; more would be a loop in the tables. */
const stagesMax = 4;

interface ForeseenDeletion {
  readonly steps: readonly RunStep[];
  readonly stages: readonly string[];
  readonly notes: readonly string[];
}

/** Changes `pass`, which is a temporary copy. */
export function foreseeDeletion(
  pass: Pass,
  request: Extract<HostRequest, { kind: 'delete' }>,
): ForeseenDeletion {
  endWhatIs(pass);
  requestDeletion(pass, request, { actor: actors.plan });
  const steps: RunStep[] = [];
  const stages: string[] = [];
  for (let count = 0; count < stagesMax; count++) {
    const before = pass.status.image || 'what it was adopted with';
    const run = startStage(pass);
    steps.push(...run.steps.map((step) => ({ ...step })));
    stages.push(stageText(run, before));
    if (run.kind === RunKind.DELETE) break;
    succeed(pass, run);
  }
  recordRemains(pass);
  return { steps, stages, notes: [...leftNotes(pass), ...fenceNotes(pass)] };
}

/** A hold that prevents the deletion refuses it now; the plan is for the time after that. */
function endWhatIs({ status, record }: Pass): void {
  delete status.run;
  delete status.claim;
  delete record.operation;
  status.holds = [];
}

/** The result of the run when every step of it succeeds. */
function succeed(pass: Pass, run: Run): void {
  for (const step of run.steps) {
    step.state = StepState.SUCCEEDED;
    if (step.name === engineSteps.off) pass.status.poweredOn = false;
    if (switchesOn(step.name)) pass.status.poweredOn = true;
  }
  run.phase = RunPhase.ENDED;
  run.outcome = RunOutcome.SUCCEEDED;
  run.endTime = timeNow(pass);
  applyRunEnd(pass, run);
}

/** "release: registry.example/os:1 stops, the host is switched off" */
function stageText({ kind, steps }: RunView, image: string): string {
  const off = steps.some(({ name }) => name === engineSteps.off);
  const texts: Readonly<Record<number, readonly string[]>> = {
    [RunKind.RELEASE]: [`${image} stops`, ...(off ? ['the host is switched off'] : [])],
    [RunKind.CLEAN]: ['the host is erased', ...(off ? ['and switched off'] : [])],
    [RunKind.DELETE]: [
      ...(off ? ['the host is switched off'] : []),
      'the agent forgets it',
      'its record goes',
    ],
  };
  return `${runKindName(kind)}: ${(texts[kind] ?? []).join(', ').replace(', and', ' and')}`;
}

/** Notes on what the deletion leaves unchanged, or may leave unchanged. */
function leftNotes(pass: PassView): string[] {
  const { record, spec, status } = pass;
  if (isForced(pass)) return record.leftBehind.map((line) => `left behind: ${line}`);
  const left = [];
  if (spec.deletion?.keepPower === true) left.push('its policy leaves the power as it is');
  if (record.eraseBeforeRemoval && spec.deletion?.keepData === true) {
    left.push('its policy leaves the data of the image on its disks');
  }
  if (status.state === HostState.EXTERNAL) left.push('an external host’s power is left as it is');
  return left;
}

function fenceNotes(pass: PassView): string[] {
  const { spec, snapshot } = pass;
  if (!isForced(pass) || !snapshot.agentRegistered) return [];
  const calls = `each call to agent and BMC is made once and waited for ${
    snapshot.timing.forcedCallTimeoutMs / 1_000
  } s`;
  const until = `until the agent of ${spec.rack} has forgotten it`;
  return [calls, `fenced off ${until}: whoever is enrolled with ${addressesOf(spec)}`];
}

function addressesOf({ bmc, bootMacs }: DeepReadonly<HostSpec>): string {
  const addresses = [...(bmc === undefined ? [] : [endpointText(bmc)]), ...bootMacs];
  return addresses.join(' or ');
}
